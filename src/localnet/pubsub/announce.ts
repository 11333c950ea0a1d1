import { SYSTEM_PROGRAM } from '../chain/addresses.ts'
import type { Account, AccountWrite, Block, Chain, ChainEvent, Commitment, TransactionRecord } from '../chain/model.ts'
import { factsOf, type TransactionFacts } from '../chain/transaction-facts.ts'
import { createAccountEncoder } from '../rpc/account-encoder.ts'
import { encodeBlock } from '../rpc/encode-transaction.ts'
import { createMatcher } from '../rpc/filters.ts'
import { type Json, writeJson } from '../rpc/json.ts'
import type { Registry, Subscription } from './registry.ts'
import type { SubscriptionRequest } from './requests.ts'
import { voteNotification } from './vote-notification.ts'

type AnnounceDeps = { readonly chain: Chain; readonly registry: Registry; readonly nowMs: () => number }
type RequestOf<Kind extends SubscriptionRequest['kind']> = Extract<SubscriptionRequest, { kind: Kind }>

/** A deleted account in a notification. */
const DELETED_ACCOUNT: Account = {
  lamports: 0n,
  owner: SYSTEM_PROGRAM,
  data: new Uint8Array(0),
  executable: false,
  rentEpoch: 0n,
}

/** Turns chain events into notifications, in a validator's order: slot, content, then root. */
export function createAnnouncer({ chain, registry, nowMs }: AnnounceDeps) {
  let openedSlot = chain.openSlot()

  function announce(event: ChainEvent): void {
    switch (event.kind) {
      case 'opened':
        return announceOpened(event.slot, event.parentSlot)
      case 'frozen':
        announceFrozen(event.block)
        return announceBlock(event.block, 'processed')
      // Only the updates of slots show that a slot has several banks: the content of a candidate never becomes part of the chain.
      case 'candidate':
        announceSlotUpdate('completed', event.block.slot)
        return announceSlotUpdate('frozen', event.block.slot, () => ({ stats: statsOf(event.block) }))
      case 'dead':
        return announceSlotUpdate('dead', event.slot, () => ({ err: 'bank replaced' }))
      case 'confirmed':
        announceSlotUpdate('optimisticConfirmation', event.block.slot)
        return announceBlock(event.block, 'confirmed')
      case 'finalized':
        announceBlock(event.block, 'finalized')
        announceSlotUpdate('root', event.block.slot)
        for (const subscription of registry.ofKind('root')) registry.notify(subscription, String(event.block.slot))
    }
  }

  /** A slot is opened once for each of its banks. */
  function announceOpened(slot: number, parent: number): void {
    if (slot > openedSlot) announceSlotUpdate('firstShredReceived', slot)
    openedSlot = slot
    announceSlotUpdate('createdBank', slot, () => ({ parent }))
    const result = writeJson({ parent, root: chain.slot('finalized'), slot })
    for (const subscription of registry.ofKind('slot')) registry.notify(subscription, result)
  }

  function announceFrozen(block: Block): void {
    announceSlotUpdate('completed', block.slot)
    announceSlotUpdate('frozen', block.slot, () => ({ stats: statsOf(block) }))
    announceVotes(block)
    for (const { signature } of block.transactions) {
      for (const subscription of registry.watching('signature', signature)) notifyReceived(subscription, block.slot)
    }
  }

  /** Computed only with a subscriber: reading the entries of a block allocates them. */
  function announceSlotUpdate(
    type: string,
    slot: number,
    more: () => { readonly [member: string]: Json } = () => ({}),
  ): void {
    let result: string | undefined
    for (const subscription of registry.ofKind('slotsUpdates')) {
      result ??= writeJson({ slot, timestamp: nowMs(), type, ...more() })
      registry.notify(subscription, result)
    }
  }

  function statsOf(block: Block): Json {
    const failed = block.transactions.filter(({ meta }) => meta.err !== null).length
    const counts = block.entries.map(({ transactionCount }) => transactionCount).filter((count) => count > 0)
    return {
      numTransactionEntries: counts.length,
      numSuccessfulTransactions: block.transactions.length - failed,
      numFailedTransactions: failed,
      maxTransactionsPerEntry: Math.max(0, ...counts),
    }
  }

  /** Computed only with a subscriber. */
  function announceVotes({ transactions }: Block): void {
    let votes: string[] | undefined
    for (const subscription of registry.ofKind('vote')) {
      votes ??= transactions.flatMap((record) => voteNotification(record) ?? []).map(writeJson)
      for (const vote of votes) registry.notify(subscription, vote)
    }
  }

  /** Notifies the subscriptions of one commitment when a block reaches it. */
  function announceBlock(block: Block, commitment: Commitment): void {
    const { slot } = block
    for (const subscription of registry.ofKind('block')) {
      if (subscription.request.commitment === commitment) notifyBlock(subscription, block)
    }
    for (const write of lastWrites(block)) notifyWrite(write, slot, commitment)
    for (const record of block.transactions) {
      const facts = factsOf(record)
      for (const subscription of registry.ofKind('logs')) {
        const { request } = subscription
        if (request.commitment === commitment && wantsLogs(request, facts)) {
          registry.notify(subscription, writeJson(withSlot(slot, logsOf(record))))
        }
      }
      for (const subscription of registry.watching('signature', record.signature)) {
        if (subscription.request.commitment === commitment) notifyStatus(subscription, record, slot)
      }
    }
  }

  function notifyWrite({ address, account }: AccountWrite, slot: number, commitment: Commitment): void {
    const readAccount = (other: string) => chain.account(other, commitment)
    const encoder = createAccountEncoder(address, account ?? DELETED_ACCOUNT, readAccount)
    for (const subscription of registry.watching('account', address)) {
      const { request } = subscription
      if (request.commitment !== commitment) continue
      registry.notify(subscription, writeJson(withSlot(slot, encoder.encode(request))))
    }
    if (!account) return
    for (const subscription of registry.watching('program', account.owner)) {
      const { request } = subscription
      if (request.commitment !== commitment || !matcherOf(subscription)(account)) continue
      const encoded = encoder.encodeListed(request)
      if (encoded) registry.notify(subscription, writeJson(withSlot(slot, { pubkey: address, account: encoded })))
    }
  }

  const matchers = new WeakMap<Subscription, (account: Account) => boolean>()

  function matcherOf(subscription: Subscription<RequestOf<'program'>>): (account: Account) => boolean {
    const known = matchers.get(subscription)
    if (known) return known
    const matcher = createMatcher(subscription.request.filters)
    matchers.set(subscription, matcher)
    return matcher
  }

  function notifyBlock(subscription: Subscription<RequestOf<'block'>>, block: Block): void {
    const { mentions, options } = subscription.request
    const transactions =
      mentions === undefined
        ? block.transactions
        : block.transactions.filter((record) => factsOf(record).keys.has(mentions))
    if (mentions !== undefined && transactions.length === 0) return
    const encoded = encodeBlock({ ...block, transactions }, options)
    const value: Json = encoded.ok
      ? { slot: block.slot, block: encoded.value, err: null }
      : { slot: block.slot, block: null, err: { UnsupportedTransactionVersion: encoded.unsupportedVersion } }
    registry.notify(subscription, writeJson(withSlot(block.slot, value)))
  }

  function notifyReceived(subscription: Subscription<RequestOf<'signature'>>, slot: number): void {
    if (!subscription.request.enableReceived) return
    registry.notify(subscription, writeJson(withSlot(slot, 'receivedSignature')))
  }

  function notifyStatus(
    subscription: Subscription<RequestOf<'signature'>>,
    record: TransactionRecord,
    slot: number,
  ): void {
    registry.notify(subscription, writeJson(withSlot(slot, { err: record.meta.err as Json })), { isLast: true })
  }

  /** A transaction may have landed before its signatureSubscribe: the one notification comes from the ledger. */
  function announcePast(subscription: Subscription): void {
    const { request } = subscription
    if (request.kind !== 'signature') return
    const record = chain.transaction(request.signature)
    if (!record || record.slot > chain.slot('processed')) return
    notifyReceived(subscription as Subscription<RequestOf<'signature'>>, record.slot)
    const reached = chain.slot(request.commitment)
    if (record.slot <= reached) notifyStatus(subscription as Subscription<RequestOf<'signature'>>, record, reached)
  }

  return { announce, announcePast }
}

function withSlot(slot: number, value: Json): Json {
  return { context: { slot }, value }
}

function logsOf({ signature, meta }: TransactionRecord): Json {
  return { signature, err: meta.err as Json, logs: meta.logMessages }
}

function wantsLogs({ filter }: RequestOf<'logs'>, facts: TransactionFacts): boolean {
  if (filter === 'allWithVotes') return true
  return filter === 'all' ? !facts.isVote : facts.keys.has(filter.mentions)
}

/** The last state of each account the block wrote, in the order of those writes. */
function lastWrites(block: Block): AccountWrite[] {
  const last = new Map<string, AccountWrite>()
  const consider = (write: AccountWrite) => {
    const other = last.get(write.address)
    if (!other || other.writeVersion < write.writeVersion) last.set(write.address, write)
  }
  for (const { writes } of block.transactions) writes.forEach(consider)
  block.systemWrites.forEach(consider)
  return [...last.values()].sort((a, b) => (a.writeVersion < b.writeVersion ? -1 : 1))
}
