import type { Clock } from '../../core/clock.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import type { EngineProcess } from '../engine/process.ts'
import type { DumpReply } from '../engine/protocol.ts'
import { textKey, toAccount } from '../engine/values.ts'
import { createGenesis } from '../genesis/genesis.ts'
import type { ChainKeys } from '../genesis/keys.ts'
import type { LocalnetOptions } from '../options.ts'
import type { Account, Block } from './model.ts'
import { type ChainState, createGenesisState } from './state.ts'

/** A chain that has just begun. The engine is asked for the programs and sysvars it brings along. */
export async function createNewState(
  options: LocalnetOptions,
  source: {
    readonly keys: ChainKeys
    readonly fixtures: Iterable<readonly [string, Account]>
    readonly clock: Clock
    readonly engine: EngineProcess
  },
): Promise<{ readonly state: ChainState; readonly block: Block }> {
  const { keys, fixtures, clock } = source
  const engineAccounts = await readEngineAccounts(source.engine)
  const genesis = createGenesis({ engineAccounts, fixtures, keys, createdAtMs: clock.nowMs() })
  return createGenesisState(genesis, {
    ledger: { bytesMax: options.limits.ledgerBytesMax, blocksMax: options.limits.ledgerBlocksMax },
    ticksPerSlot: options.ticksPerSlot,
    slotsPerEpoch: options.slotsPerEpoch,
    identity: encodeBase58(keys.identity.publicKey),
    unixSeconds: Math.floor(clock.nowMs() / 1000),
  })
}

async function readEngineAccounts(engine: EngineProcess): Promise<[string, Account][]> {
  const { promise, resolve, reject } = Promise.withResolvers<DumpReply>()
  engine.send({ op: 'dump' }, (reply) => {
    if (reply === 'engine-down') reject(new Error('the engine died before the chain began'))
    else resolve(reply as DumpReply)
  })
  const { accounts } = await promise
  return accounts.map(([address, account]) => [textKey(address), toAccount(account)])
}
