import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { methodCost } from '../../access/plan.ts'
import type { ProductKey } from '../../contract/products.ts'
import type { Clock } from '../../core/clock.ts'
import { createHeldMemory, HeldAmounts } from '../../core/held-amounts.ts'
import type { GrpcCall, MessageLimits } from '../../platform/grpc/call.ts'
import { GrpcCode } from '../../platform/grpc/status.ts'
import { createSlicedChecks } from '../../platform/process/sliced-checks.ts'
import { file_geyser } from '../../solana/gen/geyser_pb.ts'
import { file_health } from '../../solana/gen/health_pb.ts'
import {
  file_reflection,
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from '../../solana/gen/reflection_pb.ts'
import { file_reflection_v1alpha } from '../../solana/gen/reflection-v1alpha_pb.ts'
import { file_shredstream } from '../../solana/gen/shredstream_pb.ts'
import { createFileDescriptors, type FileDescriptors } from '../../solana/geyser/file-descriptors.ts'
import { decodeMessage, encodeMessage } from '../../solana/geyser/protobuf.ts'
import type { ListenerMeter } from '../metrics.ts'
import { callerRefusal, overLimitRefusal, PERMIT_RETRY_MS } from '../refusal.ts'
import { rateLimitHeaders } from '../rpc/http-response.ts'
import { type CallLimit, callLimitRefusal, endLater, grpcStatusOf, SHUTTING_DOWN } from './refusal.ts'

/** grpc.reflection.v1 and v1alpha, with a token: tools read the descriptors of the services instead of proto files. */
export type Reflection = Disposable & {
  isServed(path: string): boolean
  /** `product`: the one that the caller was authenticated for. */
  serve(call: GrpcCall, caller: Caller, product: ProductKey): void
  /** Ends calls whose token is no longer valid; in slices of time. */
  sweep(): void
}

export type ReflectionOptions = {
  /** A refusal by a limit is delayed by this time, so that a client that retries at once does not spin. */
  readonly refusalDelayMs: number
  /** Proto files of the services of this listener, besides those of every listener. */
  readonly services: readonly ReflectedService[]
}

export type ReflectedService = 'geyser' | 'shredstream'

export type ReflectionDeps = {
  readonly access: Pick<Access, 'admit' | 'renew' | 'quota'>
  readonly clock: Clock
  readonly meter: Pick<ListenerMeter, 'request' | 'refused'>
  /** The open calls of all threads; without it they are of this thread alone. */
  readonly calls?: HeldAmounts | undefined
}

/** The two versions have the same messages. */
const PATHS: ReadonlySet<string> = new Set([
  '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
  '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
])
const METHOD = 'ServerReflectionInfo'
/** Open calls of one subscription. They take no permit of a stream: a tool holds one while it makes its real call. */
const STREAMS_MAX = 8
const STREAMS: CallLimit = {
  limit: 'reflectionStreams',
  size: STREAMS_MAX,
  what: 'open reflection calls',
  retryAfterMs: PERMIT_RETRY_MS,
}
const MAXIMA = { total: Number.POSITIVE_INFINITY, key: STREAMS_MAX }
/** A name of a file or a symbol, as it arrives and inflated. */
const REQUEST_BYTES_MAX = 1024
/** A call without a request for this time ends. */
const IDLE_MS = 60_000

export function createReflection(
  { refusalDelayMs, services }: ReflectionOptions,
  { access, clock, meter, calls = new HeldAmounts(createHeldMemory({ threads: 1 }), 0) }: ReflectionDeps,
): Reflection {
  const files = createFileDescriptors([
    ...(services.includes('geyser') ? [file_geyser] : []),
    file_health,
    file_reflection,
    file_reflection_v1alpha,
    ...(services.includes('shredstream') ? [file_shredstream] : []),
  ])
  /** Open calls with the token they came with. */
  const open = new Map<GrpcCall, { readonly caller: Caller; readonly product: ProductKey }>()
  const limits: MessageLimits = {
    bytesMax: () => REQUEST_BYTES_MAX,
    onRefused: ({ limit }) => meter.refused(limit ?? 'readable'),
  }

  /** The caller as the store has it now; undefined where the call was ended because its token is not valid any more. */
  function renewed(call: GrpcCall, { tokenSha256 }: Caller, product: ProductKey): Caller | undefined {
    const caller = access.renew(tokenSha256, product, clock.nowMs())
    if (caller.ok) return caller
    call.end(grpcStatusOf(callerRefusal('grpc', caller)))
    return undefined
  }

  const checks = createSlicedChecks((call: GrpcCall) => {
    const found = open.get(call)
    if (found !== undefined) renewed(call, found.caller, found.product)
  })

  return {
    isServed: (path) => PATHS.has(path),
    serve(call, given, product) {
      const { id: subscription } = given.subscription
      if (calls.take(subscription, 1, MAXIMA) !== undefined) {
        meter.refused(STREAMS.limit, { subscription, code: 'rate-limited' })
        const status = grpcStatusOf(callLimitRefusal(STREAMS, methodCost(given.limits, METHOD)), access.quota(given))
        return endLater(call, clock, { delayMs: refusalDelayMs }, () => call.end(status))
      }
      open.set(call, { caller: given, product })
      const end = () => call.end({ code: GrpcCode.ok })
      let idle = clock.setTimer(IDLE_MS, end)
      let isRefused = false
      call.onClose(() => {
        open.delete(call)
        calls.release(subscription, 1)
        idle.cancel()
      })
      call.onShutdown(() => call.end(SHUTTING_DOWN))
      call.onHalfClose(end)
      call.onWritable(() => call.resumeMessages())
      call.onMessage((bytes) => {
        if (isRefused) return
        idle.cancel()
        idle = clock.setTimer(IDLE_MS, end)
        const caller = renewed(call, given, product)
        if (caller === undefined) return
        const request = decodeMessage(ServerReflectionRequestSchema, bytes)
        if (request === undefined)
          return call.end({ code: GrpcCode.invalidArgument, message: 'cannot decode the request' })
        const admission = access.admit(caller, { interface: 'grpc', method: METHOD, product })
        if (!admission.ok) {
          if (!('limitName' in admission)) return call.end(grpcStatusOf(callerRefusal('grpc', admission)))
          meter.refused(admission.limitName)
          isRefused = true
          call.pauseMessages()
          const status = grpcStatusOf(overLimitRefusal(admission, METHOD, clock.nowMs()), admission)
          return endLater(call, clock, { delayMs: refusalDelayMs }, () => call.end(status))
        }
        meter.request(METHOD)
        call.sendHeaders(rateLimitHeaders(admission, admission.cost))
        // Responses are larger than requests: a client that does not read them gets no more.
        if (!call.send(respond(request, files))) call.pauseMessages()
      }, limits)
    },
    sweep: () => checks.check(open.keys()),
    [Symbol.dispose]: () => checks[Symbol.dispose](),
  }
}

function respond(request: ServerReflectionRequest, files: FileDescriptors): Uint8Array {
  return encodeMessage(ServerReflectionResponseSchema, {
    validHost: request.host,
    originalRequest: request,
    messageResponse: responseTo(request.messageRequest, files),
  })
}

type Response = NonNullable<
  Parameters<typeof encodeMessage<typeof ServerReflectionResponseSchema>>[1]['messageResponse']
>

function responseTo(asked: ServerReflectionRequest['messageRequest'], files: FileDescriptors): Response {
  switch (asked.case) {
    case 'listServices':
      return { case: 'listServicesResponse', value: { service: files.services.map((name) => ({ name })) } }
    case 'fileByFilename':
      return filesResponse(files.byName(asked.value), 'file')
    case 'fileContainingSymbol':
      return filesResponse(files.bySymbol(asked.value), 'symbol')
    case 'allExtensionNumbersOfType':
      // The files are proto3 and extend nothing.
      if (!files.isMessage(asked.value)) return errorResponse(GrpcCode.notFound, 'unknown type')
      return { case: 'allExtensionNumbersResponse', value: { baseTypeName: asked.value, extensionNumber: [] } }
    case 'fileContainingExtension':
      return errorResponse(GrpcCode.notFound, 'unknown extension')
    default:
      return errorResponse(GrpcCode.invalidArgument, 'the request is of no known kind')
  }
}

function filesResponse(found: readonly Uint8Array[] | undefined, what: 'file' | 'symbol'): Response {
  if (found === undefined) return errorResponse(GrpcCode.notFound, `unknown ${what}`)
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto: [...found] } }
}

function errorResponse(errorCode: number, errorMessage: string): Response {
  return { case: 'errorResponse', value: { errorCode, errorMessage } }
}
