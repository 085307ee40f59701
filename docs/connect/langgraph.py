# pip install stopcause
import stopcause
from agent import agent  # yours, as it is

stopcause.instrument()
agent.invoke({"messages": [("user", "Close the ticket.")]})
