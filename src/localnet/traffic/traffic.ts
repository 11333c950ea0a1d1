import { randomInt } from '../../core/random.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { createSigningKey, type SigningKey } from '../../solana/crypto/ed25519.ts'
import {
  buildLegacyMessage,
  type Instruction,
  memoInstruction,
  signMessage,
  transferInstruction,
} from '../../solana/transaction/build.ts'
import { MEMO_PROGRAM } from '../chain/addresses.ts'
import type { Chain, SubmitOutcome } from '../chain/model.ts'
import { sha256 } from '../chain/poh.ts'
import {
  createTokenOwnedAccount,
  initializeMint,
  initializeTokenAccount,
  MINT_BYTES,
  mintTo,
  TOKEN_ACCOUNT_BYTES,
  transferTokens,
} from './token-instructions.ts'

export type TrafficDeps = BaseDeps & {
  readonly chain: Chain
  /** The generator's wallets are derived from it, so that a restarted chain finds them again. */
  readonly secret: Uint8Array
}

export type Traffic = Disposable & {
  /** Transactions that landed since the start, including failed ones. */
  landed(): number
}

const WALLETS = 8
const DECIMALS = 6
const LAMPORTS_PER_SOL = 1_000_000_000n
const TOP_UP_BELOW = LAMPORTS_PER_SOL
const TOP_UP_LAMPORTS = 100n * LAMPORTS_PER_SOL
const TOKENS_PER_WALLET = 1_000_000_000_000n
/** Higher rates send several transactions per tick. */
const TICKS_PER_SECOND_MAX = 50

type Wallet = { readonly key: SigningKey; readonly tokens: SigningKey }

/** Sends small transfers of lamports and tokens, memos, and some failing transactions. */
export function startTraffic(options: { readonly tps: number }, deps: TrafficDeps): Traffic {
  const { chain, clock, random, log } = deps
  const derive = (name: string) => createSigningKey(sha256(deps.secret, new TextEncoder().encode(`traffic ${name}`)))
  const mint = derive('mint')
  const wallets = Array.from(
    { length: WALLETS },
    (_, i): Wallet => ({ key: derive(`wallet ${i}`), tokens: derive(`tokens ${i}`) }),
  )
  let landed = 0
  let owed = 0
  let isReady = false
  let isSettingUp = false

  const periodMs = Math.max(1000 / options.tps, 1000 / TICKS_PER_SECOND_MAX)
  const timer = options.tps > 0 ? clock.setRepeating(periodMs, () => void tick().catch(report)) : undefined

  async function tick(): Promise<void> {
    if (!isReady) return setUp()
    owed += (options.tps * periodMs) / 1000
    const due = Math.floor(owed)
    owed -= due
    await Promise.all(Array.from({ length: due }, () => sendOne()))
  }

  /** Funds the wallets and creates the token; a step that an earlier run has done is skipped. */
  async function setUp(): Promise<void> {
    if (isSettingUp) return
    isSettingUp = true
    try {
      const steps: boolean[] = []
      for (const { key } of wallets) steps.push(await topUp(key))
      if (!exists(mint)) steps.push(await openMint())
      for (const wallet of wallets) if (!exists(wallet.tokens)) steps.push(await openTokens(wallet))
      isReady = steps.every((isDone) => isDone)
      log.debug({ wallets: wallets.length, tps: options.tps }, 'traffic begins')
    } finally {
      isSettingUp = false
    }
  }

  function openMint(): Promise<boolean> {
    const [{ key }] = wallets as [Wallet]
    const lamports = chain.minimumBalance(MINT_BYTES)
    const account = { payer: key.publicKey, address: mint.publicKey, lamports, bytes: MINT_BYTES }
    const initialize = initializeMint(mint.publicKey, key.publicKey, DECIMALS)
    return send([createTokenOwnedAccount(account), initialize], [key, mint])
  }

  function openTokens({ key, tokens }: Wallet): Promise<boolean> {
    const [first] = wallets as [Wallet]
    const lamports = chain.minimumBalance(TOKEN_ACCOUNT_BYTES)
    const create = createTokenOwnedAccount({
      payer: key.publicKey,
      address: tokens.publicKey,
      lamports,
      bytes: TOKEN_ACCOUNT_BYTES,
    })
    const initialize = initializeTokenAccount(tokens.publicKey, mint.publicKey, key.publicKey)
    const fill = mintTo(mint.publicKey, tokens.publicKey, first.key.publicKey, TOKENS_PER_WALLET)
    return send([create, initialize, fill], [key, tokens, first.key])
  }

  async function sendOne(): Promise<void> {
    const from = wallets[randomInt(random, WALLETS)] as Wallet
    const to = wallets[randomInt(random, WALLETS)] as Wallet
    if ((chain.account(encodeBase58(from.key.publicKey), 'processed')?.lamports ?? 0n) < TOP_UP_BELOW)
      await topUp(from.key)
    await send([pick(from, to)], [from.key])
  }

  function pick(from: Wallet, to: Wallet): Instruction {
    const amount = BigInt(1 + randomInt(random, 1_000_000))
    const wallet = from.key.publicKey
    const dice = random.float()
    if (dice < 0.55) return transferInstruction({ from: wallet, to: to.key.publicKey, lamports: amount })
    if (dice < 0.85) {
      const tokens = { from: from.tokens.publicKey, to: to.tokens.publicKey, mint: mint.publicKey, owner: wallet }
      return transferTokens({ ...tokens, amount, decimals: DECIMALS })
    }
    if (dice < 0.96) return memoInstruction(decodeBase58(MEMO_PROGRAM), `hello from localnet ${amount}`, [wallet])
    // More than any balance: the transaction lands, fails and pays its fee.
    return transferInstruction({ from: wallet, to: to.key.publicKey, lamports: 2n ** 60n + amount })
  }

  async function send(instructions: readonly Instruction[], signers: readonly SigningKey[]): Promise<boolean> {
    const recentBlockhash = decodeBase58(chain.latestBlockhash('processed').blockhash)
    const feePayer = (signers[0] as SigningKey).publicKey
    const message = buildLegacyMessage({ feePayer, recentBlockhash, instructions })
    return note(await chain.submit(signMessage(message, signers)))
  }

  async function topUp(key: SigningKey): Promise<boolean> {
    const address = encodeBase58(key.publicKey)
    if ((chain.account(address, 'processed')?.lamports ?? 0n) >= TOP_UP_BELOW) return true
    return note(await chain.airdrop(address, TOP_UP_LAMPORTS))
  }

  function exists(key: SigningKey): boolean {
    return chain.account(encodeBase58(key.publicKey), 'processed') !== null
  }

  function note(outcome: SubmitOutcome): boolean {
    if (outcome.ok) landed++
    else log.debug({ outcome }, 'traffic transaction refused')
    return outcome.ok
  }

  function report(err: unknown): void {
    log.warn({ err }, 'traffic tick failed')
  }

  return {
    landed: () => landed,
    [Symbol.dispose]() {
      timer?.cancel()
    },
  }
}
