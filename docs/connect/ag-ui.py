# pip install stopcause
from agent import app  # yours: any ASGI application, as it is

from stopcause.agui.tap_asgi import AguiMiddleware

app = AguiMiddleware(app, agent="ticket-agent", threads="agui.db")
