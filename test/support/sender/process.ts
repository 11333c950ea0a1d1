import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeTestFolder } from '../../../src/platform/files/test-folder.ts'
import { type Served, serve } from '../process/serve.ts'
import type { NodeTask } from './node.ts'
import { TIP_ACCOUNTS } from './start.ts'

export type SenderNode = AsyncDisposable & { readonly url: string; readonly child: ChildProcess }

/** A node in its own process that accepts every transaction and reports it as landed. */
export async function startSenderNode(leader?: NodeTask): Promise<SenderNode> {
  const child = fork(join(import.meta.dirname, 'node.ts'), [JSON.stringify(leader ?? null)], { execArgv: [] })
  const [url] = (await once(child, 'message')) as [string]
  return {
    url,
    child,
    async [Symbol.asyncDispose]() {
      child.disconnect()
      await once(child, 'exit')
    },
  }
}

export type SenderProcess = AsyncDisposable & {
  readonly url: string
  readonly served: Served
  readonly folder: string
  metrics(): Promise<string>
  residentBytes(): number
}

/** A `sluice sender` process over one node. `more` are lines for its configuration; `state` is a folder to use instead of a new one. */
export async function startSenderProcess(nodeUrl: string, more: string, state?: string): Promise<SenderProcess> {
  await using opening = new AsyncDisposableStack()
  const folder = opening.use(makeTestFolder())
  writeFileSync(
    folder.file('sluice.toml'),
    [
      '[upstreams]',
      'allowPrivate = true',
      '[[upstreams.nodes]]',
      'name = "node"',
      `rpc = "${nodeUrl}"`,
      '[sender]',
      `tipAccounts = ${JSON.stringify(TIP_ACCOUNTS)}`,
      more,
    ].join('\n'),
  )
  const served = opening.use(
    serve({
      command: 'sender',
      cwd: folder.path,
      args: ['--config', folder.file('sluice.toml'), '--state', state ?? folder.file('state')],
    }),
  )
  const url = `http://${await served.address('sender')}`
  const metricsUrl = `http://${await served.address('metrics')}/metrics`
  await served.line(/"msg":"started"/)
  const opened = opening.move()
  return {
    url,
    served,
    folder: folder.path,
    metrics: async () => (await fetch(metricsUrl)).text(),
    residentBytes: () =>
      1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${served.child.pid}/status`, 'utf8'))?.[1]),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
