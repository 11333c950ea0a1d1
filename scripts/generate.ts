/** Runs every `scripts/generate-*.ts`. With `--check` nothing is written and stale files are an error. */
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

for (const script of globSync('scripts/generate-*.ts', { cwd: root }).toSorted()) {
  const { status } = spawnSync(process.execPath, [script, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' })
  if (status !== 0) {
    process.stderr.write(`${script} failed; to write fresh files: npm run generate\n`)
    process.exitCode = 1
  }
}
