# pip install stopcause
import stopcause
from agent import agent  # yours, as it is

stopcause.instrument()
agent.run_sync("Close the ticket.")
