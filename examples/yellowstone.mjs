import Client, { CommitmentLevel } from '@triton-one/yellowstone-grpc'
import { GRPC_URL, TOKEN } from './settings.mjs'

// The client sends the token as x-token.
const client = new Client(GRPC_URL, TOKEN, undefined)
await client.connect?.() // needed from version 5 on
console.log('version', JSON.parse(await client.getVersion()).version.version)

const stream = await client.subscribe()
stream.write({
  accounts: {},
  slots: { all: { filterByCommitment: true } },
  transactions: {},
  transactionsStatus: {},
  blocks: {},
  blocksMeta: {},
  entry: {},
  accountsDataSlice: [],
  commitment: CommitmentLevel.CONFIRMED,
})
let received = 0
for await (const update of stream) {
  if (update.slot === undefined) continue
  console.log('slot', update.slot.slot, 'parent', update.slot.parent)
  if (++received === 3) break
}
stream.cancel?.() // of versions below 5, which keep the call open
