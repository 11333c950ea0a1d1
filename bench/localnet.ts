import { createSeededRandom } from '../src/core/random.ts'
import { systemClock } from '../src/host/clock.ts'
import { silentLogger } from '../src/host/logger.ts'
import { startChain } from '../src/localnet/chain.ts'
import { createChainKeys } from '../src/localnet/keys.ts'
import { parseLocalnetOptions } from '../src/localnet/options.ts'
import { decodeBase58, encodeBase58 } from '../src/solana/base58.ts'
import { createSigningKey } from '../src/solana/ed25519.ts'
import { buildLegacyMessage, signMessage, transferInstruction } from '../src/solana/transaction-build.ts'

const COUNT = Number(process.argv[2] ?? 4000)
const WINDOW = 500
const random = createSeededRandom(1)
const startedAt = performance.now()
const options = parseLocalnetOptions({ slotMs: 400 })
const keys = createChainKeys(() => random.bytes(32))
const deps = { clock: systemClock, log: silentLogger, random }
await using chain = await startChain(options, { keys }, deps)
const payer = createSigningKey(random.bytes(32))
console.log('start to first answer ms', performance.now() - startedAt, chain.slot('processed'))
await chain.airdrop(encodeBase58(payer.publicKey), 10n ** 15n)
console.log('start to first landed ms', performance.now() - startedAt)
const recentBlockhash = decodeBase58(chain.latestBlockhash('processed').blockhash)
const wires = Array.from({ length: COUNT }, (_, i) =>
  signMessage(
    buildLegacyMessage({
      feePayer: payer.publicKey,
      recentBlockhash,
      instructions: [
        transferInstruction({ from: payer.publicKey, to: random.bytes(32), lamports: 1_000_000n + BigInt(i) }),
      ],
    }),
    [payer],
  ),
)
const t0 = performance.now()
const cpu = process.cpuUsage()
let next = 0,
  ok = 0
async function worker() {
  while (next < COUNT) {
    const o = await chain.submit(wires[next++]!)
    if (o.ok) ok++
    else console.log(o)
  }
}
await Promise.all(Array.from({ length: WINDOW }, worker))
const s = (performance.now() - t0) / 1000
const used = process.cpuUsage(cpu)
console.log({
  ok,
  tps: ok / s,
  mainCpuUsPerTx: (used.user + used.system) / ok,
  slots: chain.slot('processed'),
  rss: process.memoryUsage().rss / 1e6,
})
const { readFileSync } = await import('node:fs')
console.log('engine', readFileSync(`/proc/${chain.enginePid()}/status`, 'utf8').match(/VmRSS.*/)?.[0])
