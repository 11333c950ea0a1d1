import type { AccessSnapshot } from '../access/snapshot.ts'
import { ServiceError } from '../core/service-error.ts'
import type { LogTap } from '../host/log-tap.ts'
import { LOG_LEVELS, type LogLevel } from '../host/logger.ts'

/** What `sluice logs tail` asks of a running process. */
export type LogRequest = {
  readonly sub?: string | undefined
  readonly level?: string | undefined
  readonly lines: number
  readonly follow: boolean
}

/** What came over the control socket, as far as it makes sense; the command line has checked it before. */
export function parseLogRequest(params: unknown): LogRequest {
  const { sub, level, lines, follow } = (params ?? {}) as Record<string, unknown>
  return {
    sub: typeof sub === 'string' ? sub : undefined,
    level: typeof level === 'string' && (LOG_LEVELS as readonly string[]).includes(level) ? level : undefined,
    lines: typeof lines === 'number' && Number.isSafeInteger(lines) && lines >= 0 ? lines : 0,
    follow: follow === true,
  }
}

/**
 * Lines of the log that pass: as they were written, so masked and bounded already. Filtered here and not by the reader, so that what nobody wants to
 * see is not sent.
 */
export async function* logLines(
  tap: LogTap,
  request: LogRequest,
  { snapshot, signal }: { readonly snapshot: AccessSnapshot; readonly signal: AbortSignal },
): AsyncGenerator<string> {
  const passes = createLineFilter(request, snapshot)
  // Asked for before the past is sent, so that no line falls between the two.
  const following = request.follow ? tap.follow(signal)[Symbol.asyncIterator]() : undefined
  const coming = following?.next()
  const past = request.lines === 0 ? [] : tap.recent().filter(passes).slice(-request.lines)
  for (const line of past) yield line.trimEnd()
  if (following === undefined) return
  for (let next = await coming; next !== undefined && next.done !== true; next = await following.next())
    if (passes(next.value)) yield next.value.trimEnd()
}

function createLineFilter({ sub, level }: LogRequest, snapshot: AccessSnapshot): (line: string) => boolean {
  const least = level === undefined ? 0 : LOG_LEVELS.indexOf(level as LogLevel)
  const id = sub === undefined ? undefined : subscriptionOf(sub, snapshot)
  return (line) => {
    // A reader that fell behind is told so, whatever it asked for.
    if (line.includes('"lost":')) return true
    // Most lines name no subscription: those are told apart without being parsed.
    if (id !== undefined && !line.includes(id)) return false
    const record = parse(line)
    if (record === undefined) return false
    return LOG_LEVELS.indexOf(record['level'] as LogLevel) >= least
  }
}

/** Records name a subscription by its id. */
function subscriptionOf(idOrName: string, snapshot: AccessSnapshot): string {
  const byId = snapshot.subscription(idOrName)
  if (byId !== undefined) return byId.id
  for (const { id, name } of snapshot.subscriptions()) if (name === idOrName) return id
  throw new ServiceError('not-found', `there is no subscription "${idOrName}"`, {
    fix: 'List them with: sluice sub list',
  })
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line) as Record<string, unknown>
  } catch {
    return undefined
  }
}
