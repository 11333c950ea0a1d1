/** Which slots are current, and which version the cluster has. */
export type SlotWindow = {
  validate(slot: number, version: number, nowMs: number): WindowVerdict
  /** A packet of this slot passed every check. */
  moved(slot: number, version: number, nowMs: number): void
  newest(): number | undefined
  version(): number | undefined
  /** How often the window was set anew because only strangers came. */
  resets(): number
}

export type WindowVerdict = 'current' | 'late' | 'ahead' | 'version'

export type SlotWindowOptions = {
  readonly backSlots: number
  readonly aheadSlots: number
  /** A version that is given is never changed by what comes in. */
  readonly version?: number | undefined
}

/** When nothing current has come for so long, what does come is taken for the truth: a source that was away, or a cluster that began anew. */
const STALLED_MS = 2000
/** So many strangers in a row must agree, roughly, before they are believed. */
const STRANGERS = 128

export function createSlotWindow(options: SlotWindowOptions): SlotWindow {
  let { version } = options
  let newest: number | undefined
  let currentAtMs = 0
  let resets = 0
  const strangerSlots = new Float64Array(STRANGERS)
  const strangerVersions = new Uint16Array(STRANGERS)
  let strangers = 0

  function verdictOf(slot: number, itsVersion: number): WindowVerdict {
    if (version !== undefined && itsVersion !== version) return 'version'
    if (newest === undefined) return 'current'
    if (slot < newest - options.backSlots) return 'late'
    return slot > newest + options.aheadSlots ? 'ahead' : 'current'
  }

  /** The dominant version among the strangers, and the middle of its slots, so that a few absurd ones have no say. */
  function believeStrangers(nowMs: number): void {
    const wanted = options.version ?? middleOf(Float64Array.from(strangerVersions))
    const slots = strangerSlots.filter((_, at) => strangerVersions[at] === wanted)
    strangers = 0
    currentAtMs = nowMs
    if (slots.length < STRANGERS / 2) return
    version = wanted
    newest = middleOf(slots)
    resets += 1
  }

  return {
    validate(slot, itsVersion, nowMs) {
      const verdict = verdictOf(slot, itsVersion)
      if (verdict === 'current') return verdict
      if (nowMs - currentAtMs < STALLED_MS) {
        strangers = 0
        return verdict
      }
      strangerSlots[strangers] = slot
      strangerVersions[strangers] = itsVersion
      strangers += 1
      if (strangers < STRANGERS) return verdict
      believeStrangers(nowMs)
      return verdictOf(slot, itsVersion)
    },
    moved(slot, itsVersion, nowMs) {
      currentAtMs = nowMs
      version ??= itsVersion
      if (newest === undefined || slot > newest) newest = slot
    },
    newest: () => newest,
    version: () => version,
    resets: () => resets,
  }
}

function middleOf(values: Float64Array): number {
  return values.toSorted()[values.length >> 1] as number
}
