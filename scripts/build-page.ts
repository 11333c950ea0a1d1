/** Bundles the live page into dist/page when it is stale. `npm start` does the same. */
import { gzipSync } from 'node:zlib'
import { openPage } from '../src/processes/compose/services/page.ts'

const startedMs = performance.now()
const { files, built } = await openPage()
const seconds = ((performance.now() - startedMs) / 1000).toFixed(2)
process.stdout.write(`${built ? 'built' : 'already up to date'} in ${seconds} s\n`)
for (const { path, body } of files) {
  process.stdout.write(
    `${path.padEnd(36)} ${String(body.length).padStart(8)} B ${String(gzipSync(body).length).padStart(8)} B gzipped\n`,
  )
}
