/** Writes the generated pages of docs/ from the code that they describe. With `--check` nothing is written and a stale page is an error. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { apiPage } from './docs/api-page.ts'
import { commandsPage } from './docs/commands-page.ts'
import { configPage } from './docs/config-page.ts'
import { errorsPage } from './docs/errors-page.ts'
import { metricsPage } from './docs/metrics-page.ts'
import { bundleOpenApi } from './docs/openapi/bundle.ts'
import { executionOpenApi } from './docs/openapi/execution.ts'
import { indexerOpenApi, operatorOpenApi } from './docs/openapi/operator.ts'
import { senderOpenApi } from './docs/openapi/sender.ts'
import { executionAsyncApi } from './docs/openapi/stream.ts'
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
  'docs/openapi/bundle.json': jsonText(bundleOpenApi()),
  'docs/openapi/execution.json': jsonText(executionOpenApi()),
  'docs/openapi/indexer.json': jsonText(indexerOpenApi()),
  'docs/openapi/operator.json': jsonText(operatorOpenApi()),
  'docs/openapi/sender.json': jsonText(senderOpenApi()),
  'docs/asyncapi/execution.json': jsonText(executionAsyncApi()),
}

const stale = Object.entries(pages).filter(([path, text]) => read(path) !== text)
for (const [path, text] of stale) {
  if (check) {
    process.stderr.write(`${path} is stale\n`)
    process.exitCode = 1
  } else {
    mkdirSync(dirname(join(root, path)), { recursive: true })
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

function jsonText(document: object): string {
  return `${JSON.stringify(document, null, 2)}\n`
}
