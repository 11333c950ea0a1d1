/** Bundles the live page into dist/page and the operator's console into dist/console and the customer's page into dist/account when they are stale. `npm start` does the same. */
import { gzipSync } from 'node:zlib'
import { openAccountPage } from '../src/processes/compose/pages/account.ts'
import { openConsole } from '../src/processes/compose/pages/console.ts'
import { openPage } from '../src/processes/compose/pages/live.ts'

for (const [name, open] of [
  ['live page', openPage],
  ['console', openConsole],
  ['account page', openAccountPage],
] as const) {
  const startedMs = performance.now()
  const { files, built } = await open()
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(2)
  process.stdout.write(`${name}: ${built ? 'built' : 'already up to date'} in ${seconds} s\n`)
  for (const { path, body } of files) {
    process.stdout.write(
      `${path.padEnd(36)} ${String(body.length).padStart(8)} B ${String(gzipSync(body).length).padStart(8)} B gzipped\n`,
    )
  }
}
