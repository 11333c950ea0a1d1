import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readIfThere } from '../src/platform/files/optional.ts'

const root = join(import.meta.dirname, '..')

/** Writes the generated files that are stale, by their path in the checkout. With `--check` nothing is written and a stale file is an error. */
export function keepFresh(files: Readonly<Record<string, string>>): void {
  const isCheck = process.argv.includes('--check')
  for (const [path, text] of Object.entries(files)) {
    const position = join(root, path)
    if (readIfThere(position) === text) continue
    if (isCheck) {
      process.stderr.write(`${path} is stale\n`)
      process.exitCode = 1
    } else {
      mkdirSync(dirname(position), { recursive: true })
      writeFileSync(position, text)
      process.stdout.write(`${path} written\n`)
    }
  }
}
