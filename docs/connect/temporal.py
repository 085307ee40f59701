# pip install stopcause
from agent import work  # yours, as it is: where your worker runs

import stopcause

stopcause.instrument()
work()
