import type { IncomingMessage } from 'node:http'
import type { Clock } from '../core/clock.ts'
import { createKeyedBuckets } from '../core/keyed-buckets.ts'
import { createAuthTarpit } from '../platform/net/auth-tarpit.ts'
import { peerKey } from '../platform/net/connection-caps.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import { QueryError } from './query/error.ts'

/** What one address may do without a login. */
export type AddressLimits = {
  /** The refusal of a ping, preflight or unknown path that is one too many. */
  refuseOpen(request: IncomingMessage): QueryError | undefined
  /** Calls `respond` to a wrong login, at once or after a wait, with whether the connection is closed afterwards. */
  refuseLogin(request: IncomingMessage, respond: (closes: boolean) => void): void
}

const OPEN_REQUESTS = { perSecond: 200, burst: 2000 }
const NOT_COUNTED = { inc() {} }

/** Behind a proxy that is not trusted every client has the address of the proxy, and a stranger would use up the limits of all: there are none then. */
export function createAddressLimits(
  { listen, trustedProxies }: { readonly listen: ListenerOptions; readonly trustedProxies: readonly string[] },
  clock: Clock,
): AddressLimits {
  if (listen.plaintext === 'behind-proxy' && trustedProxies.length === 0)
    return { refuseOpen: () => undefined, refuseLogin: (_request, respond) => respond(false) }
  const openRequests = createKeyedBuckets(OPEN_REQUESTS, () => clock.monotonicMs())
  const tarpit = createAuthTarpit({ trustedProxies }, clock)
  const peerOf = ({ socket, rawHeaders }: IncomingMessage) => ({
    remoteAddress: socket.remoteAddress ?? '',
    headers: rawHeaders,
  })
  return {
    refuseOpen(request) {
      const taken = openRequests.take(peerKey(tarpit.addressOf(peerOf(request))))
      return taken.ok ? undefined : tooManyOpen(taken.retryAfterMs)
    },
    refuseLogin: (request, respond) => tarpit.refuse(peerOf(request), NOT_COUNTED, respond),
  }
}

function tooManyOpen(retryAfterMs: number): QueryError {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  const message = `Limit openRequests reached: ${OPEN_REQUESTS.perSecond} requests without a login per second of one address.`
  return new QueryError('QUOTA_EXPIRED', message, seconds)
}
