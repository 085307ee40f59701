# pip install stopcause
from agent import ask  # yours, as it is

import stopcause

stopcause.instrument()
ask("Close the ticket.")
