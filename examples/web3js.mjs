import { Connection } from '@solana/web3.js'
import { RPC_URL, TOKEN } from './settings.mjs'
import { ticketUrl } from './ticket.mjs'

// HTTP: the token is a header. WebSocket: the URL contains a ticket; to reconnect, a program creates a new Connection with a new ticket.
const connection = new Connection(RPC_URL, {
  commitment: 'confirmed',
  httpHeaders: { 'x-token': TOKEN },
  wsEndpoint: await ticketUrl(RPC_URL, TOKEN),
})
console.log('slot', await connection.getSlot())

let received = 0
await new Promise((resolve) => {
  connection.onSlotChange(({ slot, root }) => {
    console.log('slot', slot, 'root', root)
    if (++received === 3) resolve()
  })
})
// web3.js has no API to close its WebSocket, which would keep the process alive.
process.exit()
