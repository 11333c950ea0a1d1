const state = document.querySelector('#state')
const slots = document.querySelector('#slots')

/** Reconnects after every loss with a new ticket and exponential backoff. */
async function connect(waitMs = 500) {
  const response = await fetch('/ticket', { method: 'POST' }).catch(() => undefined)
  if (!response?.ok) return reconnect(waitMs)
  const socket = new WebSocket(await response.text())
  socket.onopen = () => {
    waitMs = 500
    state.textContent = 'connected'
    socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'slotSubscribe' }))
  }
  socket.onmessage = ({ data }) => {
    const { method, params } = JSON.parse(data)
    if (method !== 'slotNotification') return
    const line = document.createElement('li')
    line.textContent = `slot ${params.result.slot}, root ${params.result.root}`
    slots.append(line)
    if (slots.children.length > 20) slots.firstElementChild.remove()
  }
  socket.onclose = () => reconnect(waitMs)
}

function reconnect(waitMs) {
  state.textContent = 'connecting again'
  setTimeout(() => void connect(Math.min(waitMs * 2, 10_000)), waitMs * (0.5 + Math.random() / 2))
}

await connect()
