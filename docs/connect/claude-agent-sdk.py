# pip install stopcause
import stopcause
from agent import agent, asyncio  # yours, as it is: it calls query()

stopcause.instrument()
asyncio.run(agent("Close the ticket."))
