import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'

/** Machines on one switch. Each is a network namespace with its own virtual link; no traffic leaves them. */
export type Network<Name extends string> = Disposable & {
  readonly namespaceOf: (machine: Name) => string
  /** Disconnects the machine at the switch: packets are lost silently. */
  pull(machine: Name): void
  plug(machine: Name): void
}

/** The address of the first machine, which holds the switch. */
export const SWITCH_ADDRESS = '10.78.0.1'

/** Throws the kernel's error where namespaces are not allowed. */
export function makeNetwork<Name extends string>(switchAt: Name, others: readonly Name[]): Network<Name> {
  using making = new DisposableStack()
  const namespaceOf = (machine: Name) => `slu-${machine}-${process.pid}`
  for (const machine of [switchAt, ...others]) {
    ip('netns', 'add', namespaceOf(machine))
    making.defer(() => ip('netns', 'del', namespaceOf(machine)))
    ip('-n', namespaceOf(machine), 'link', 'set', 'lo', 'up')
  }
  const atSwitch = namespaceOf(switchAt)
  ip('-n', atSwitch, 'link', 'add', 'switch', 'type', 'bridge')
  ip('-n', atSwitch, 'addr', 'add', `${SWITCH_ADDRESS}/24`, 'dev', 'switch')
  ip('-n', atSwitch, 'link', 'set', 'switch', 'up')
  for (const [at, machine] of others.entries()) {
    const far = namespaceOf(machine)
    ip('link', 'add', `to-${machine}`, 'netns', atSwitch, 'type', 'veth', 'peer', 'name', 'cable', 'netns', far)
    ip('-n', atSwitch, 'link', 'set', `to-${machine}`, 'master', 'switch', 'up')
    ip('-n', far, 'addr', 'add', `10.78.0.${at + 2}/24`, 'dev', 'cable')
    ip('-n', far, 'link', 'set', 'cable', 'up')
  }
  const made = making.move()
  return {
    namespaceOf,
    pull: (machine) => ip('-n', atSwitch, 'link', 'set', `to-${machine}`, 'down'),
    plug: (machine) => ip('-n', atSwitch, 'link', 'set', `to-${machine}`, 'up'),
    [Symbol.dispose]: () => made[Symbol.dispose](),
  }
}

function ip(...words: string[]): void {
  execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' })
}

/** The functions a child serves over IPC. Arguments and results are passed by structured clone. */
export type Calls = Record<string, (...args: never[]) => unknown>

type Order = { readonly id: number; readonly name: string; readonly given: readonly unknown[] }
type Response = { readonly id: number; readonly value?: unknown; readonly message?: string }

/** In the child: serves calls until the parent disconnects. */
export async function respondToCalls(calls: Calls): Promise<void> {
  async function respond({ id, name, given }: Order): Promise<void> {
    let reported: Response
    try {
      reported = { id, value: await calls[name]?.(...(given as never[])) }
    } catch (error) {
      reported = { id, message: error instanceof Error ? (error.stack ?? error.message) : String(error) }
    }
    if (process.connected) process.send?.(reported)
  }
  process.on('message', (order: Order) => void respond(order))
  process.send?.({ id: 0 } satisfies Response)
  await once(process, 'disconnect')
}

export type Remote<Made extends Calls> = AsyncDisposable & {
  call<Name extends keyof Made & string>(
    name: Name,
    ...given: Parameters<Made[Name]>
  ): Promise<Awaited<ReturnType<Made[Name]>>>
}

const START_MS_MAX = 120_000
const CALL_MS_MAX = 90_000
const END_MS_MAX = 20_000

/** Starts a child inside a namespace, together with everything it starts. */
export async function startRemote<Made extends Calls>(
  namespace: string,
  entry: string,
  ...words: string[]
): Promise<Remote<Made>> {
  const child: ChildProcess = spawn('ip', ['netns', 'exec', namespace, process.execPath, entry, ...words], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
  })
  const ended = once(child, 'exit')
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let lastId = 0
  const expect = (id: number) => {
    const asked = Promise.withResolvers<unknown>()
    waiting.set(id, asked)
    return asked.promise
  }
  const ready = expect(0)
  child.on('message', ({ id, value, message }: Response) => {
    const asked = waiting.get(id)
    waiting.delete(id)
    if (message === undefined) asked?.resolve(value)
    else asked?.reject(new Error(message))
  })
  child.on('exit', () => {
    for (const call of waiting.values()) call.reject(new Error(`the process in ${namespace} has exited`))
  })
  const within = <T>(what: string, ms: number, work: Promise<T>): Promise<T> =>
    Promise.race([
      work,
      pause(ms, undefined, { ref: false }).then(() => {
        throw new Error(`${namespace}: ${what} took more than ${ms} ms`)
      }),
    ])

  const dispose = async (): Promise<void> => {
    if (child.connected) child.disconnect()
    const isLate = await Promise.race([ended.then(() => false), pause(END_MS_MAX, true, { ref: false })])
    if (isLate) child.kill('SIGKILL')
    await ended
  }
  try {
    await within('starting', START_MS_MAX, ready)
  } catch (error) {
    await dispose()
    throw error
  }
  return {
    call(name, ...given) {
      const asked = expect(++lastId)
      child.send({ id: lastId, name, given } satisfies Order)
      return within(name, CALL_MS_MAX, asked) as never
    },
    [Symbol.asyncDispose]: dispose,
  }
}
