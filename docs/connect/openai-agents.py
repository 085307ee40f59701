# pip install stopcause
from agent import answer  # yours, as it is: it calls Runner.run

import stopcause

stopcause.instrument()
answer("Close the ticket.")
