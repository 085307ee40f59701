# pip install stopcause
import asyncio
import stopcause
from agent import close_ticket  # yours, as it is: it awaits a workflow

stopcause.instrument()
asyncio.run(close_ticket(7))
