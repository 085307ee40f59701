# pip install stopcause
from agent import agent  # yours, as it is

import stopcause

stopcause.instrument()
agent.run("Close the ticket.")
