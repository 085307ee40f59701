# pip install stopcause
import asyncio
import stopcause
from agent import runner  # yours, as it is

stopcause.instrument()
asyncio.run(runner.run_debug("Close the ticket."))
