# pip install stopcause
from agent import crew  # yours, as it is

import stopcause

stopcause.instrument()
crew.kickoff(inputs={"ticket": 7})
