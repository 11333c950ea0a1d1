import { CommitmentLevel, SubscribeRequestSchema, SubscribeUpdateSchema } from '../../../solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../../solana/geyser/protobuf.ts'
import { type FollowedStreamDeps, followStream } from './followed-stream.ts'

/** An account as a node has it. */
export type AccountUpdate = {
  readonly key: Uint8Array
  readonly owner: Uint8Array
  readonly data: Uint8Array
  readonly slot: number
}

export type TableSubscription = Disposable & {
  /** Whether changes of these accounts arrive now. */
  readonly isOpen: boolean
  /** Replaces the accounts; `onCurrent` follows. */
  set(addresses: readonly string[]): void
}

export type TableListener = {
  onAccount(update: AccountUpdate): void
  /** The node follows what was set last: what has changed before is to be read. */
  onCurrent(): void
  /** Changes do not arrive until the next `onCurrent`. */
  onLost(): void
}

/** An account has at most 10 MiB. */
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024

/** Follows accounts with one stream of a node. */
export function subscribeTables(deps: FollowedStreamDeps, listener: TableListener): TableSubscription {
  let accounts: readonly string[] = []
  /** The number of the last request; its pong shows that the node has applied it. */
  let request = 0

  function onMessage(message: Uint8Array): void {
    const update = decodeMessage(SubscribeUpdateSchema, message)?.updateOneof
    if (update?.case === 'pong' && update.value.id === request) return listener.onCurrent()
    if (update?.case === 'ping') return stream.replyToPing()
    if (update?.case !== 'account' || update.value.account === undefined) return
    const { pubkey, owner, data } = update.value.account
    const slot = Number(update.value.slot)
    listener.onAccount({ key: copyOf(pubkey), owner: copyOf(owner), data: copyOf(data), slot })
  }

  /** A request with a ping is a ping alone, so the accounts come in another one before it. */
  function sendAccounts(): void {
    stream.send(requestOf(accounts))
    request = (request % PING_ID_MAX) + 1
    stream.send(pingOf(request))
  }

  const stream = followStream(
    {
      path: '/geyser.Geyser/Subscribe',
      name: 'lookup tables',
      messageBytesMax: MESSAGE_BYTES_MAX,
      pingReply: pingOf(0),
    },
    deps,
    {
      first: () => requestOf(accounts),
      onMessage,
      onOpen: () => sendAccounts(),
      onLost: () => listener.onLost(),
    },
  )
  return {
    get isOpen() {
      return stream.isOpen
    },
    set(addresses) {
      accounts = addresses
      // A stream that opens sends them by itself.
      if (stream.isOpen) sendAccounts()
    },
    [Symbol.dispose]: () => stream[Symbol.dispose](),
  }
}

/** Fields of a message are views of the read buffer of its connection, which the next message overwrites. */
function copyOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes)
}

const PING_ID_MAX = 2 ** 31 - 1

function requestOf(accounts: readonly string[]): Uint8Array {
  return encodeMessage(SubscribeRequestSchema, {
    commitment: CommitmentLevel.PROCESSED,
    // Without accounts a filter would match all.
    accounts: accounts.length === 0 ? {} : { tables: { account: [...accounts] } },
    // Keeps the stream alive at nodes that end one without any filter.
    slots: { slots: {} },
  })
}

function pingOf(id: number): Uint8Array {
  return encodeMessage(SubscribeRequestSchema, { ping: { id } })
}
