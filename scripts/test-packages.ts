import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readIfThere } from '../src/platform/files/optional.ts'

const folder = join(import.meta.dirname, '../test')
const STAMP = join(folder, 'node_modules/.sluice-installed')

/**
 * Installs the packages of `test/package.json`: large ones that only tests, benches and `npm run generate` use, so that `npm ci` of the project
 * stays small. Does nothing while those of its lockfile are installed. Returns false where npm fails.
 */
export function prepareTestPackages(report: (line: string) => void): boolean {
  const wanted = createHash('sha256')
    .update(`${process.platform} ${process.arch}\n`)
    .update(readFileSync(join(folder, 'package-lock.json')))
    .digest('hex')
  if (readIfThere(STAMP) === wanted) return true
  report('installing the packages of test/package.json')
  const args = ['ci', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const { status } = spawnSync('npm', args, { stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) {
    report(`cannot install them: npm ended with ${status ?? 'a signal'}; run: npm ${args.join(' ')}`)
    return false
  }
  writeFileSync(STAMP, wanted)
  return true
}
