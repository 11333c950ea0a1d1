import {
  createDefaultRpcSubscriptionsChannelCreator,
  createRpcSubscriptionsTransportFromChannelCreator,
  createSolanaRpc,
  createSolanaRpcSubscriptionsFromTransport,
} from '@solana/kit'
import { RPC_URL, TOKEN } from './settings.mjs'
import { ticketUrl } from './ticket.mjs'

// HTTP: the token is a header.
const rpc = createSolanaRpc(RPC_URL, { headers: { 'x-token': TOKEN } })
console.log('slot', await rpc.getSlot({ commitment: 'confirmed' }).send())

// WebSocket: every connection that kit opens, including reconnects, gets a new ticket.
const rpcSubscriptions = createSolanaRpcSubscriptionsFromTransport(
  createRpcSubscriptionsTransportFromChannelCreator(async (channel) => {
    const createChannel = createDefaultRpcSubscriptionsChannelCreator({ url: await ticketUrl(RPC_URL, TOKEN) })
    return createChannel(channel)
  }),
)
const stop = new AbortController()
const slots = await rpcSubscriptions.slotNotifications().subscribe({ abortSignal: stop.signal })
let received = 0
for await (const { slot, root } of slots) {
  console.log('slot', slot, 'root', root)
  if (++received === 3) break
}
stop.abort()
