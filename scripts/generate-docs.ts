/** Writes the generated pages of docs/ from the code that they describe. With `--check` nothing is written and a stale page is an error. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { apiPage } from './docs/api-page.ts'
import { commandsPage } from './docs/commands-page.ts'
import { configPage } from './docs/config-page.ts'
import { errorsPage } from './docs/errors-page.ts'
import { metricsPage } from './docs/metrics-page.ts'
import { schemaPage } from './docs/schema-page.ts'

const root = join(import.meta.dirname, '..')
const check = process.argv.includes('--check')

const pages: Record<string, string> = {
  'docs/config.md': configPage(),
  'docs/commands.md': commandsPage(),
  'docs/errors.md': errorsPage(),
  'docs/metrics.md': metricsPage(),
  'docs/api.md': apiPage(),
  'docs/schema.md': schemaPage(),
}

const stale = Object.entries(pages).filter(([path, text]) => read(path) !== text)
for (const [path, text] of stale) {
  if (check) {
    process.stderr.write(`${path} is stale\n`)
    process.exitCode = 1
  } else {
    mkdirSync(join(root, 'docs'), { recursive: true })
    writeFileSync(join(root, path), text)
    process.stdout.write(`${path} written\n`)
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    return undefined
  }
}
