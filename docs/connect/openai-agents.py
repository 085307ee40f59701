# pip install stopcause
import stopcause
from agent import agent  # yours, as it is
from agents import Runner

stopcause.instrument()
Runner.run_sync(agent, "Close the ticket.")
