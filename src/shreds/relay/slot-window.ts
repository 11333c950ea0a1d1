/** The slots around the newest one, and the shred version of their cluster. Any packet that passed every check may be the newest one. */
export type SlotWindow = {
  classify(slot: number, version: number, nowMs: number): WindowVerdict
  /** The verdict for a packet, which is not counted. */
  verdictOf(slot: number, version: number): WindowVerdict
  /** Records a packet of this slot that passed every check. */
  advance(slot: number, version: number, nowMs: number): void
  /** Moves to this slot, back or ahead, and to its version unless one is configured. */
  moveTo(slot: number, version: number, nowMs: number): void
  setLength(length: { readonly backSlots: number; readonly aheadSlots: number }): void
  newest(): number | undefined
  version(): number | undefined
  /** How often the window was moved because only packets outside it arrived. */
  resets(): number
}

export type WindowVerdict = 'current' | 'late' | 'ahead' | 'version'

export type SlotWindowOptions = {
  readonly backSlots: number
  readonly aheadSlots: number
  /** A configured version is never changed by received packets. */
  readonly version?: number | undefined
}

/** After this time without a current packet the window may move: the source was disconnected, or the cluster restarted. */
const STALLED_MS = 2000
/** Packets outside the window that are collected before it moves. */
const OUTLIERS = 128

export function createSlotWindow(options: SlotWindowOptions): SlotWindow {
  let { version, backSlots, aheadSlots } = options
  let newest: number | undefined
  let currentAtMs = 0
  let resets = 0
  const outlierSlots = new Float64Array(OUTLIERS)
  const outlierVersions = new Uint16Array(OUTLIERS)
  let outliers = 0

  function verdictOf(slot: number, packetVersion: number): WindowVerdict {
    if (version !== undefined && packetVersion !== version) return 'version'
    if (newest === undefined) return 'current'
    if (slot < newest - backSlots) return 'late'
    return slot > newest + aheadSlots ? 'ahead' : 'current'
  }

  /** Moves the window to the median slot of the median version among the outliers, so that a few absurd packets have no effect. */
  function reset(nowMs: number): void {
    const medianVersion = options.version ?? medianOf(Float64Array.from(outlierVersions))
    const slots = outlierSlots.filter((_, at) => outlierVersions[at] === medianVersion)
    outliers = 0
    currentAtMs = nowMs
    if (slots.length < OUTLIERS / 2) return
    version = medianVersion
    newest = medianOf(slots)
    resets += 1
  }

  return {
    verdictOf,
    classify(slot, packetVersion, nowMs) {
      const verdict = verdictOf(slot, packetVersion)
      if (verdict === 'current') return verdict
      if (nowMs - currentAtMs < STALLED_MS) {
        outliers = 0
        return verdict
      }
      outlierSlots[outliers] = slot
      outlierVersions[outliers] = packetVersion
      outliers += 1
      if (outliers < OUTLIERS) return verdict
      reset(nowMs)
      return verdictOf(slot, packetVersion)
    },
    advance(slot, packetVersion, nowMs) {
      currentAtMs = nowMs
      version ??= packetVersion
      if (newest === undefined || slot > newest) newest = slot
    },
    moveTo(slot, packetVersion, nowMs) {
      currentAtMs = nowMs
      version = options.version ?? packetVersion
      newest = slot
    },
    setLength(length) {
      backSlots = length.backSlots
      aheadSlots = length.aheadSlots
    },
    newest: () => newest,
    version: () => version,
    resets: () => resets,
  }
}

function medianOf(values: Float64Array): number {
  return values.toSorted()[values.length >> 1] as number
}
