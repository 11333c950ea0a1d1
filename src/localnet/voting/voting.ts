import type { Logger } from '../../platform/telemetry/logger.ts'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import type { LocalChain } from '../chain/chain.ts'
import type { ChainKeys } from '../genesis/keys.ts'
import { buildVoteTransaction } from './vote-transaction.ts'

/** Sends the validator's vote for each block into the slot after it. A vote that is lost is covered by the next one. Alpenglow has no votes in blocks. */
export function startVoting({
  chain,
  keys,
  log,
}: {
  readonly chain: LocalChain
  readonly keys: Pick<ChainKeys, 'identity' | 'vote'>
  readonly log: Logger
}): Disposable {
  const stop = chain.subscribe((event) => {
    if (event.kind === 'opened' && chain.consensus === 'tower')
      void vote().catch((err: unknown) => log.warn({ err }, 'vote failed'))
  })

  async function vote(): Promise<void> {
    const { slot, blockhash, bankHash, time } = chain.head
    const block = { slot, blockhash: decodeBase58(blockhash), bankHash, time }
    const outcome = await chain.submit(buildVoteTransaction({ block, identity: keys.identity, voteAccount: keys.vote }))
    if (!outcome.ok) log.debug({ outcome, slot }, 'vote refused')
  }

  return { [Symbol.dispose]: stop }
}
