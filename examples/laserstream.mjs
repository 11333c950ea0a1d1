import { CommitmentLevel, subscribe } from 'helius-laserstream'
import { GRPC_URL, TOKEN } from './settings.mjs'

// The client sends the token as x-token, reconnects by itself, and resumes from the last slot it received.
let updates = 0
const stream = await subscribe(
  { apiKey: TOKEN, endpoint: GRPC_URL },
  { slots: { all: { filterByCommitment: true } }, commitment: CommitmentLevel.CONFIRMED },
  (update) => {
    if (update.slot === undefined) return
    console.log('slot', update.slot.slot, 'parent', update.slot.parent)
    if (++updates === 3) stream.cancel()
  },
  (error) => {
    console.error(error)
    process.exitCode = 1
  },
)
