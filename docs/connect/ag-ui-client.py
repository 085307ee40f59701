# pip install "stopcause[agui]"
import httpx
from agent import payload, url  # yours: where it is, and what to send

from stopcause.agui.guard import ResumeGuard
from stopcause.agui.tap_httpx import AguiTransport

transport = AguiTransport(agent="ticket-agent", guard=ResumeGuard("agui.db"))
httpx.Client(transport=transport).post(url, json=payload)
