import { MainChain, type WindowLength } from './main-chain.ts'
import { createSlotWindow, type SlotWindowOptions, type WindowVerdict } from './slot-window.ts'

/**
 * Which slots are current: those around the newest slot (slot-window.ts), and those around the chain that most packets belong to (main-chain.ts).
 * Usually both are the same. Where they are apart it is not known which one is the live feed: a few packets ahead may be forged, and many packets may
 * be those of a source that lags. So neither makes the other late or too early.
 */
export type RelayWindow = {
  classify(slot: number, version: number, nowMs: number): WindowVerdict
  /** Whether `classify` would accept such a packet, which is not counted. */
  isCurrent(slot: number, version: number): boolean
  /** The verdict for a packet whose leader is not known: while signed packets arrive, it belongs to the slots around the newest one or is not current. */
  classifyUnchecked(slot: number, version: number, nowMs: number): WindowVerdict
  /** Whether only a few packets that could not be checked have moved it. The first signed packet moves it to its slot, wherever that is. */
  isUnproven(): boolean
  /** Records a packet that passed every check. */
  advance(slot: number, version: number, nowMs: number, isSigned: boolean): void
  setLength(length: WindowLength): void
  /** Whether a slot of any version is current. */
  hasSlot(slot: number): boolean
  /** Whether the slot is one of the main chain, or at most `reachSlots` ahead of it. Older slots are. */
  isOfMainChain(slot: number, version: number): boolean
  /** Whether the slot is older than those around the main chain. */
  isBehindMainChain(slot: number, version: number): boolean
  newest(): number | undefined
  version(): number | undefined
  /** How often the newest slot was set again because only packets outside its window arrived. */
  resets(): number
  /** Changes when the main chain continues at lower slots or has another version. */
  generation(): number
}

type RelayWindowOptions = SlotWindowOptions & {
  /** How far ahead of the main chain a slot still belongs to it. */
  readonly reachSlots: number
}

export function createRelayWindow(options: RelayWindowOptions): RelayWindow {
  const { reachSlots } = options
  const window = createSlotWindow(options)
  const main = new MainChain(options)

  function isOfMainChain(slot: number, version: number): boolean {
    return main.slot === undefined || (version === main.version && slot <= main.slot + reachSlots)
  }

  return {
    classify(slot, version, nowMs) {
      const verdict = window.classify(slot, version, nowMs)
      if (options.version !== undefined && version !== options.version) return verdict
      return main.observe(slot, version, nowMs) ? 'current' : verdict
    },
    isCurrent: (slot, version) => window.verdictOf(slot, version) === 'current' || main.isCurrent(slot, version),
    classifyUnchecked: (slot, version, nowMs) => (main.isSigned(nowMs) ? window.verdictOf(slot, version) : 'current'),
    isUnproven: () => main.isUnproven,
    advance(slot, version, nowMs, isSigned) {
      if (window.verdictOf(slot, version) === 'current') window.advance(slot, version, nowMs)
      else if (isSigned && main.isUnproven) window.moveTo(slot, version, nowMs)
      main.advance(slot, version, nowMs, isSigned)
    },
    setLength(length) {
      window.setLength(length)
      main.setLength(length)
    },
    hasSlot: (slot) => main.hasSlot(slot) || window.verdictOf(slot, window.version() ?? 0) === 'current',
    isOfMainChain,
    isBehindMainChain: (slot, version) => main.isBehind(slot, version),
    newest() {
      const newest = window.newest()
      if (newest === undefined || main.slot === undefined) return newest
      return isOfMainChain(newest, window.version() as number) ? Math.max(newest, main.slot) : main.slot
    },
    version: () => main.version ?? window.version(),
    resets: window.resets,
    generation: () => main.generation,
  }
}
