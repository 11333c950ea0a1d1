import type { GrpcCall } from '../../platform/grpc/call.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import { serveUnary, type UnaryResponse } from '../../platform/grpc/unary.ts'
import {
  GetBlockHeightRequestSchema,
  GetBlockHeightResponseSchema,
  GetLatestBlockhashRequestSchema,
  GetLatestBlockhashResponseSchema,
  GetSlotRequestSchema,
  GetSlotResponseSchema,
  GetVersionRequestSchema,
  GetVersionResponseSchema,
  IsBlockhashValidRequestSchema,
  IsBlockhashValidResponseSchema,
  PingRequestSchema,
  PongResponseSchema,
  SubscribeReplayInfoRequestSchema,
  SubscribeReplayInfoResponseSchema,
} from '../../solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../solana/geyser/protobuf.ts'
import { BLOCKHASH_AGE_MAX, isValidAge } from '../chain/blockhash-queue.ts'
import type { Block, Chain, Commitment } from '../chain/model.ts'
import { commitmentOf } from './filter/filter.ts'
import { FilterError } from './filter/limits.ts'

export type UnaryDeps = {
  readonly chain: Chain
  /** The oldest slot a stream can be replayed from. */
  readonly firstReplaySlot: () => number | undefined
  readonly version: string
}

/** The Yellowstone plugin adds 300, where JSON-RPC adds 150. */
const BLOCKHASH_AGE = 300

/** Serves one of the unary methods; false when there is no such method. */
export function serveGeyserUnary(call: GrpcCall, method: string, deps: UnaryDeps): boolean {
  const response = METHODS[method]
  if (!response) return false
  serveUnary(call, (request) => {
    try {
      return { ok: true, message: response(request, deps) }
    } catch (error) {
      return refusal(error)
    }
  })
  return true
}

class UnaryError extends Error {
  readonly status: GrpcStatus
  constructor(status: GrpcStatus) {
    super(status.message)
    this.status = status
  }
}

function refusal(error: unknown): UnaryResponse {
  if (error instanceof UnaryError) return { ok: false, status: error.status }
  // An invalid commitment: the Yellowstone plugin responds with UNKNOWN here, unlike on a stream.
  if (error instanceof FilterError) return { ok: false, status: { code: GrpcCode.unknown, message: error.message } }
  throw error
}

const METHODS: { readonly [method: string]: (request: Uint8Array, deps: UnaryDeps) => Uint8Array } = {
  Ping(bytes) {
    const { count } = decoded(decodeMessage(PingRequestSchema, bytes))
    return encodeMessage(PongResponseSchema, { count })
  },

  GetSlot(bytes, { chain }) {
    const { commitment } = decoded(decodeMessage(GetSlotRequestSchema, bytes))
    return encodeMessage(GetSlotResponseSchema, { slot: BigInt(headOf(chain, commitmentOf(commitment)).slot) })
  },

  GetBlockHeight(bytes, { chain }) {
    const { commitment } = decoded(decodeMessage(GetBlockHeightRequestSchema, bytes))
    const { height } = headOf(chain, commitmentOf(commitment))
    return encodeMessage(GetBlockHeightResponseSchema, { blockHeight: BigInt(height) })
  },

  GetLatestBlockhash(bytes, { chain }) {
    const { commitment } = decoded(decodeMessage(GetLatestBlockhashRequestSchema, bytes))
    const { slot, blockhash, height } = headOf(chain, commitmentOf(commitment))
    return encodeMessage(GetLatestBlockhashResponseSchema, {
      slot: BigInt(slot),
      blockhash,
      lastValidBlockHeight: BigInt(height + BLOCKHASH_AGE),
    })
  },

  IsBlockhashValid(bytes, { chain }) {
    const { blockhash, commitment: level } = decoded(decodeMessage(IsBlockhashValidRequestSchema, bytes))
    const commitment = commitmentOf(level)
    return encodeMessage(IsBlockhashValidResponseSchema, {
      slot: BigInt(headOf(chain, commitment).slot),
      valid: isValidAge(chain.blockhashAge(blockhash, commitment), BLOCKHASH_AGE_MAX),
    })
  },

  GetVersion(bytes, { version }) {
    decoded(decodeMessage(GetVersionRequestSchema, bytes))
    return encodeMessage(GetVersionResponseSchema, { version })
  },

  SubscribeReplayInfo(bytes, { firstReplaySlot }) {
    decoded(decodeMessage(SubscribeReplayInfoRequestSchema, bytes))
    const first = firstReplaySlot()
    return encodeMessage(
      SubscribeReplayInfoResponseSchema,
      first === undefined ? {} : { firstAvailable: BigInt(first) },
    )
  },
}

function decoded<Message>(message: Message | undefined): Message {
  if (message === undefined) throw new UnaryError({ code: GrpcCode.internal, message: 'cannot decode the request' })
  return message
}

function headOf(chain: Chain, commitment: Commitment): Block {
  const block = chain.block(chain.slot(commitment))
  if (!block) throw new UnaryError({ code: GrpcCode.internal, message: 'block is not available yet' })
  return block
}
