/**
 * Versions of the HTTP interfaces, by the part of the path that names them. A version is additive as long as it lives; a breaking change is the next
 * one beside it. To retire one, put its mark here: every answer under its path then says so, and the mark stays for twelve months at least.
 */
export const VERSIONS: Versions = { v1: null }

export type Versions = Readonly<Record<string, VersionMark | null>>

export type VersionMark = {
  /** The day from which it is discouraged, as 2028-01-31. */
  readonly deprecatedFrom: string
  /** The day on which it may go. */
  readonly sunsetOn: string
  /** The version to use instead. */
  readonly successor: string
}

/** How long a version stays after it was marked. */
const SUNSET_MONTHS_MIN = 12

type Headers = Readonly<Record<string, string>>

const VERSION_OF_PATH = /^\/(?:api\/)?(v\d+)(?:\/|$)/
const GUIDE = 'docs/api.md'

/**
 * What an answer under a marked version carries besides: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and links to what comes after and to the words
 * about it. Undefined while nothing is marked, so that nothing is looked at on the way of a request.
 */
export function createVersionHeaders(versions: Versions): ((url: string) => Headers | undefined) | undefined {
  const marked = Object.entries(versions).flatMap(([version, mark]) =>
    mark === null ? [] : [[version, mark] as const],
  )
  if (marked.length === 0) return undefined
  const headers = new Map(marked.map(([version, mark]) => [version, headersOf(version, mark)]))
  return (url) => headers.get(VERSION_OF_PATH.exec(url)?.[1] ?? '')
}

function headersOf(version: string, { deprecatedFrom, sunsetOn, successor }: VersionMark): Headers {
  const from = dayOf(version, deprecatedFrom)
  const until = dayOf(version, sunsetOn)
  const earliest = new Date(from)
  earliest.setUTCMonth(earliest.getUTCMonth() + SUNSET_MONTHS_MIN)
  if (until < earliest) throw new RangeError(`${version} has to stay ${SUNSET_MONTHS_MIN} months after it is marked`)
  return {
    deprecation: `@${from.getTime() / 1000}`,
    sunset: until.toUTCString(),
    link: `</${successor}/>; rel="successor-version", <${GUIDE}>; rel="deprecation"`,
  }
}

function dayOf(version: string, day: string): Date {
  const date = new Date(`${day}T00:00:00Z`)
  if (Number.isNaN(date.getTime())) throw new RangeError(`${version}: "${day}" is not a day such as 2028-01-31`)
  return date
}

/** Of this build. */
export const versionHeaders = createVersionHeaders(VERSIONS)
