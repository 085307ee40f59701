# pip install stopcause
from agent import answer  # yours, as it is: it calls Runner.run, run_sync or run_streamed

import stopcause

stopcause.instrument()
answer("Close the ticket.")
