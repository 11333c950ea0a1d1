import { type Random, randomInt } from '../../core/random.ts'
import { type Account, type Contract, type EvmState, type Slot, storageVariable } from './state.ts'

export type SlotTouch = { readonly slot: Slot; readonly start: number; end: number; readonly isTransient: boolean }

/** An account before and after a transaction. */
export type AccountTouch = {
  readonly account: Account
  readonly nonce: number
  readonly balanceGwei: number
  readonly nonceAfter: number
  balanceGweiAfter: number
  readonly slots: SlotTouch[]
}

export type TxnLog = { readonly contract: Contract; readonly topics: readonly Uint8Array[]; readonly data: Uint8Array }

export type CallFrame = {
  readonly caller: Account
  readonly target: Account
  readonly opcode: number
  readonly depth: number
  readonly input: Uint8Array
  readonly output: Uint8Array
  /** The share of the transaction's gas spent in this frame and the frames it calls. */
  readonly gasShare: number
}

/** A transaction with all its effects; built in index order, so that the effects are those of sequential execution. */
export type Txn = {
  readonly kind: 'transfer' | 'token' | 'swap' | 'mint'
  readonly hash: Uint8Array
  readonly signature: Uint8Array
  readonly sender: Account
  readonly nonce: number
  readonly to: Account
  readonly valueGwei: number
  readonly data: Uint8Array
  readonly isSuccess: boolean
  readonly gasLimit: number
  readonly gasUsed: number
  readonly tipGwei: number
  readonly touches: readonly AccountTouch[]
  readonly logs: readonly TxnLog[]
  readonly frames: readonly CallFrame[]
  /** The duration of one execution. */
  readonly costNs: number
}

export const OPCODE = { call: 0xf1, staticCall: 0xfa } as const
export const NO_BYTES = new Uint8Array(0)

/** Builds a transaction. A failing one reads the slots it would have changed, and changes only its sender's account. */
export class TxnBuilder {
  readonly sender: Account
  readonly #state: EvmState
  readonly #random: Random
  readonly #user: () => Account
  readonly #plan: { kind: Txn['kind']; gas: number; costNs: number; isSuccess: boolean }
  readonly #touches = new Map<Account, AccountTouch>()
  readonly #logs: TxnLog[] = []
  readonly #frames: CallFrame[] = []
  readonly #nonce: number
  #valueGwei = 0

  constructor(
    plan: { kind: Txn['kind']; sender: Account; gas: number; costNs: number; isSuccess: boolean },
    state: EvmState,
    random: Random,
    user: () => Account,
  ) {
    this.sender = plan.sender
    this.#plan = plan
    this.#state = state
    this.#random = random
    this.#user = user
    this.#nonce = plan.sender.nonce
    this.#touches.set(plan.sender, newTouch(plan.sender, 1))
    plan.sender.nonce += 1
  }

  /** The account, or another one where it is the sender. */
  otherThanSender(account: Account): Account {
    for (let tries = 0; account === this.sender && tries < 8; tries++) account = this.#user()
    return account === this.sender ? this.#state.feeRecipient : account
  }

  touch(account: Account): AccountTouch {
    const known = this.#touches.get(account)
    if (known !== undefined) return known
    const touch = newTouch(account, 0)
    this.#touches.set(account, touch)
    return touch
  }

  pay(to: Account, valueGwei: number): void {
    this.#valueGwei = valueGwei
    this.#move(this.sender, -valueGwei)
    this.#move(to, valueGwei)
  }

  read(slot: Slot): void {
    this.#touchSlot(slot)
  }

  write(slot: Slot, value: number): void {
    const touch = this.#touchSlot(slot)
    if (!this.#plan.isSuccess) return
    slot.value = value
    touch.end = value
  }

  /** A reentrancy lock in transient storage: set and cleared again. */
  lock(contract: Contract, position: number): void {
    const slot = storageVariable(contract, position)
    this.touch(contract).slots.push({ slot, start: 0, end: 0, isTransient: true })
  }

  log(contract: Contract, topics: readonly Uint8Array[], data: Uint8Array): void {
    if (this.#plan.isSuccess) this.#logs.push({ contract, topics, data })
  }

  call(
    target: Account,
    input: Uint8Array,
    output: Uint8Array,
    gasShare: number,
    frame: { caller?: Account; depth?: number; opcode?: number } = {},
  ): void {
    const { caller = this.sender, depth = 0, opcode = OPCODE.call } = frame
    const returned = this.#plan.isSuccess ? output : NO_BYTES
    this.#frames.push({ caller, target, opcode, depth, input, output: returned, gasShare })
  }

  end(to: Account, data: Uint8Array): Txn {
    this.touch(to)
    const { kind, gas, costNs, isSuccess } = this.#plan
    const random = this.#random
    const gasUsed = kind === 'transfer' ? gas : Math.floor(gas * (0.8 + 0.4 * random.float()) * (isSuccess ? 1 : 0.6))
    const tipGwei = 1 + randomInt(random, 5)
    const feeGwei = gasUsed * tipGwei
    this.#move(this.sender, -feeGwei)
    this.#move(this.#state.feeRecipient, feeGwei)
    return {
      kind,
      hash: random.bytes(32),
      signature: random.bytes(64),
      sender: this.sender,
      nonce: this.#nonce,
      to,
      valueGwei: this.#valueGwei,
      data,
      isSuccess,
      gasLimit: kind === 'transfer' ? gas : Math.ceil(gas * 1.5),
      gasUsed,
      tipGwei,
      touches: [...this.#touches.values()],
      logs: this.#logs,
      frames: this.#frames,
      costNs: Math.floor(costNs * (0.7 + 0.6 * random.float())),
    }
  }

  #touchSlot(slot: Slot): SlotTouch {
    const { slots } = this.touch(slot.contract)
    const known = slots.find((touch) => touch.slot === slot && !touch.isTransient)
    if (known !== undefined) return known
    const touch = { slot, start: slot.value, end: slot.value, isTransient: false }
    slots.push(touch)
    return touch
  }

  #move(account: Account, gwei: number): void {
    // A balance that would become negative is left unchanged, so simulated accounts always have funds.
    const balance = account.balanceGwei + gwei
    this.touch(account).balanceGweiAfter = balance < 0 ? account.balanceGwei : balance
    account.balanceGwei = balance < 0 ? account.balanceGwei : balance
  }
}

function newTouch(account: Account, nonces: number): AccountTouch {
  const { nonce, balanceGwei } = account
  return { account, nonce, balanceGwei, nonceAfter: nonce + nonces, balanceGweiAfter: balanceGwei, slots: [] }
}
