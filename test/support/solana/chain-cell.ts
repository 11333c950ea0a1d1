import type { Consensus, LocalnetOptionsInput } from '../../../src/localnet/options.ts'

/**
 * The chain that tests on localnet run on, where `SLUICE_TEST_CHAIN` names one: consensus and slot length, as in `alpenglow-200`. Without it a test gets the
 * tower with the slot length of its own, usually 50 ms.
 */
export type ChainCell = { readonly consensus: Consensus; readonly slotMs: number }

const NAME = /^(tower|alpenglow)-(\d{2,5})$/

export function parseChainCell(name: string): ChainCell {
  const [, consensus, slotMs] = NAME.exec(name) ?? []
  if (consensus === undefined) throw new Error(`SLUICE_TEST_CHAIN=${name}: give a chain such as alpenglow-200`)
  return { consensus: consensus as Consensus, slotMs: Number(slotMs) }
}

function chainCell(): ChainCell | undefined {
  const name = process.env['SLUICE_TEST_CHAIN']
  return name === undefined || name === '' ? undefined : parseChainCell(name)
}

/** Whether the blocks of this run have votes, for tests that do not see the chain. */
export function hasVotes(): boolean {
  return chainCell()?.consensus !== 'alpenglow'
}

/** Slots longer than on any chain hold the chain still for a test: they stay. */
const SLOT_MS_MAX = 400

/** The options of a test on the chain of this run. A test of one consensus names it and keeps it. */
export function onChainCell(options: LocalnetOptionsInput): LocalnetOptionsInput {
  const cell = chainCell()
  if (cell === undefined || options.consensus !== undefined) return options
  return { ...options, consensus: cell.consensus, slotMs: Math.max(cell.slotMs, stillSlotMs(options)) }
}

function stillSlotMs({ slotMs = 0 }: LocalnetOptionsInput): number {
  return slotMs > SLOT_MS_MAX ? slotMs : 0
}

/** The same for the embedded chain of a process. */
export function chainCellEnv(): Record<string, string> {
  const cell = chainCell()
  if (cell === undefined) return {}
  return { SLUICE_LOCALNET__CONSENSUS: cell.consensus, SLUICE_LOCALNET__SLOT_MS: String(cell.slotMs) }
}
