/**
 * Versions of the HTTP interfaces, by path segment. Changes within a version are additive; a breaking change needs the next version. To deprecate one,
 * add it here: every response under its path then has the deprecation headers, for at least twelve months before it may be removed.
 */
export const VERSIONS: Versions = { v1: null }

export type Versions = Readonly<Record<string, VersionMark | null>>

export type VersionMark = {
  /** Day of the deprecation, as 2028-01-31. */
  readonly deprecatedFrom: string
  /** Day on which it may be removed. */
  readonly sunsetOn: string
  /** The version to use instead. */
  readonly successor: string
}

/** How long a deprecated version stays. */
const SUNSET_MONTHS_MIN = 12

type Headers = Readonly<Record<string, string>>

const VERSION_OF_PATH = /^\/(?:api\/)?(v\d+)(?:\/|$)/
/** Served by RPC and the execution service. */
const GUIDE = '/docs/api'

/**
 * Headers of a deprecated version: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and links to the successor and the documentation. Undefined while no
 * version is deprecated, so that requests cost nothing extra.
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
  if (until < earliest)
    throw new RangeError(`${version} must stay for ${SUNSET_MONTHS_MIN} months after its deprecation`)
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

/** The headers of the versions of this build. */
export const versionHeaders = createVersionHeaders(VERSIONS)
