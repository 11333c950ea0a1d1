/** Since 1970 zones change their offset at a quarter of an hour. */
const QUARTER_SECONDS = 900
/** Quarters of an hour that are remembered: about six weeks. */
const REMEMBERED_MAX = 4096
/** Largest time of Date, in seconds. */
const SECONDS_MAX = 8.64e12

/** Seconds that a time zone is ahead of UTC, at a time in seconds since 1970. */
export function createZoneOffset(zone: string): (seconds: number) => number {
  if (zone === 'UTC') return () => 0
  const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
  const remembered = new Map<number, number>()
  let lastQuarter = Number.NaN
  let lastOffset = 0

  function offsetAt(seconds: number): number {
    if (Math.abs(seconds) > SECONDS_MAX) return 0
    const name = format.formatToParts(seconds * 1000).find(({ type }) => type === 'timeZoneName')?.value ?? ''
    const [, sign, hours = 0, minutes = 0, rest = 0] = /GMT([+-])(\d+):(\d+)(?::(\d+))?/.exec(name) ?? []
    const ahead = Number(hours) * 3600 + Number(minutes) * 60 + Number(rest)
    return sign === '-' ? -ahead : ahead
  }

  return (seconds) => {
    if (seconds < 0) return offsetAt(seconds)
    const quarter = Math.floor(seconds / QUARTER_SECONDS)
    if (quarter === lastQuarter) return lastOffset
    let offset = remembered.get(quarter)
    if (offset === undefined) {
      offset = offsetAt(seconds)
      if (remembered.size >= REMEMBERED_MAX) remembered.clear()
      remembered.set(quarter, offset)
    }
    lastQuarter = quarter
    lastOffset = offset
    return offset
  }
}
