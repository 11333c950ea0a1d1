import { Connection } from '@solana/web3.js'
import { RPC_URL, TOKEN } from './settings.mjs'
import { ticketUrl } from './ticket.mjs'

// HTTP: the token is a header. WebSocket: the address has a ticket; a program that outlives its connection makes a new Connection with a new one.
const connection = new Connection(RPC_URL, {
  commitment: 'confirmed',
  httpHeaders: { 'x-token': TOKEN },
  wsEndpoint: await ticketUrl(RPC_URL, TOKEN),
})
console.log('slot', await connection.getSlot())

let told = 0
await new Promise((resolve) => {
  connection.onSlotChange(({ slot, root }) => {
    console.log('slot', slot, 'root', root)
    if (++told === 3) resolve()
  })
})
// web3.js has no way to close its WebSocket, which would keep the process alive.
process.exit()
