import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Access, authenticateHandshake } from '../../access/call-access.ts'
import type { Caller, Refused } from '../../access/callers.ts'
import { CREDENTIAL_SOURCES, collectToken } from '../../access/credentials.ts'
import { explainRefusal } from '../../access/explain-refusal.ts'
import type { Permit } from '../../access/quota/permits.ts'
import type { DocsUrl } from '../../contract/errors.ts'
import { versionHeaders } from '../../contract/versions.ts'
import { splitTarget } from '../../platform/http/request-headers.ts'
import { sendRaw } from '../../platform/http/server/reply.ts'
import { requestIdOf } from '../../platform/http/server/request-id.ts'
import type { AuthTarpit, Peer } from '../../platform/net/auth-tarpit.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import type { RefusalRecorder } from '../../platform/telemetry/refusal-log.ts'
import type { ListenerMeter } from '../metrics.ts'
import {
  notAssignedRefusal,
  permitRefusal,
  type RefusableRequest,
  type Refusal,
  recordRefusals,
  tokenRefusal,
  upstreamRefusal,
} from '../refusal.ts'
import { refusalResponse } from '../rpc/http-response.ts'

/** A handshake with a valid token or ticket, and its permit. */
export type AdmittedHandshake = {
  readonly caller: Caller
  readonly permit: Permit
  readonly requestId: string
  /** The client asks for gap notifications. */
  readonly wantsGaps: boolean
  readonly remoteAddress: string
}

export type Handshakes = {
  /** Authenticates a handshake and takes a permit for its connection; then calls `accept`, or refuses in place of the upgrade. */
  upgrade(request: IncomingMessage, socket: Duplex, accept: () => void): void
  /** For the connection that `accept` opens: it takes over the permit. */
  take(request: IncomingMessage): AdmittedHandshake
}

export type HandshakesDeps = Pick<BaseDeps, 'clock' | 'random'> & {
  readonly access: Access
  readonly tarpit: AuthTarpit
  readonly meter: Pick<ListenerMeter, 'refused' | 'delayedRefusals'>
  readonly docsUrl?: DocsUrl | undefined
  readonly refusals?: RefusalRecorder | undefined
  isDraining(): boolean
}

type Outcome =
  | { readonly kind: 'admitted'; readonly handshake: AdmittedHandshake }
  | { readonly kind: 'token-refused'; readonly refused: Refused }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** Opening a connection takes no units; its requests do. */
const HANDSHAKE_COST = 0

/** `queryToken`: accepts the token itself in the query of the address. */
export function createHandshakes(options: { readonly queryToken: boolean }, deps: HandshakesDeps): Handshakes {
  const { access, tarpit, meter, clock, docsUrl } = deps
  const tokenInterface = options.queryToken ? 'wsWithQuery' : 'ws'
  const onRefused = recordRefusals(deps.refusals, 'ws')
  const admitted = new WeakMap<IncomingMessage, AdmittedHandshake>()

  function authenticate(headers: readonly string[], query: string): Caller | Refused {
    const presented = collectToken(CREDENTIAL_SOURCES[tokenInterface], headers, query)
    return authenticateHandshake(access, { presented, tickets: valuesOf(query, 'ticket') }, 'bundle', clock.nowMs())
  }

  function admit(request: IncomingMessage, peer: Peer, requestId: string): Outcome {
    if (deps.isDraining()) return { kind: 'refused', refusal: upstreamRefusal('draining') }
    const { query } = splitTarget(request.url)
    const caller = authenticate(request.rawHeaders, query)
    if (!caller.ok) return { kind: 'token-refused', refused: caller }
    if (access.refuseWithoutNode(caller) !== undefined) return { kind: 'refused', refusal: notAssignedRefusal() }
    const permit = access.permits.acquire(caller.subscription.id, 'wsConnections', caller.limits)
    if (!permit.ok) {
      meter.refused(permit.limitName)
      return { kind: 'refused', refusal: permitRefusal(permit, HANDSHAKE_COST, caller.subscription.id) }
    }
    const wantsGaps = valuesOf(query, 'gaps')[0] === '1'
    const remoteAddress = tarpit.addressOf(peer)
    return { kind: 'admitted', handshake: { caller, permit, requestId, wantsGaps, remoteAddress } }
  }

  return {
    upgrade(request, socket, accept) {
      const requestId = requestIdOf(request, deps)
      const peer = { remoteAddress: request.socket.remoteAddress ?? '', headers: request.rawHeaders }
      const refuseWith = (refusal: Refusal) => sendRefusal(request, socket, refusal, { requestId, docsUrl, onRefused })
      const outcome = admit(request, peer, requestId)
      if (outcome.kind === 'refused') return refuseWith(outcome.refusal)
      if (outcome.kind === 'token-refused') {
        // A refused handshake closes its connection in any case.
        socket.on('error', () => socket.destroy())
        const { query } = splitTarget(request.url)
        const explained = explainRefusal(tokenInterface, outcome.refused, { headers: request.rawHeaders, query })
        return tarpit.refuse(peer, meter.delayedRefusals, () => refuseWith(tokenRefusal(explained)))
      }
      admitted.set(request, outcome.handshake)
      accept()
      // Still there where the handshake was invalid: release its permit.
      admitted.get(request)?.permit.release()
      admitted.delete(request)
    },
    take(request) {
      const handshake = admitted.get(request) as AdmittedHandshake
      admitted.delete(request)
      return handshake
    },
  }
}

/** The same body and headers as a refusal over RPC, in place of the upgrade. */
function sendRefusal(request: IncomingMessage, socket: Duplex, refusal: Refusal, context: RefusableRequest): void {
  const { status, headers, body } = refusalResponse(refusal, context)
  const version = versionHeaders?.(request.url ?? '/')
  sendRaw(socket, status, String(body), { ...version, ...headers, 'x-request-id': context.requestId })
}

/** Every value of a name in the query. A value that cannot be decoded stays as it is, and is then no valid ticket. */
function valuesOf(query: string, name: string): string[] {
  return query
    .split('&')
    .filter((part) => part === name || part.startsWith(`${name}=`))
    .map((part) => decode(part.slice(name.length + 1)))
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
