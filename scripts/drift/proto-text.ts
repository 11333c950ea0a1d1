/** What a protocol file or a client package declares, by qualified name: `SubscribeRequest.block_footer`. */
export type Protocol = {
  readonly messages: Set<string>
  /** The number is undefined where the source has names only. */
  readonly fields: Map<string, number | undefined>
  readonly enumValues: Map<string, number>
  /** Methods of gRPC services: `Geyser/Subscribe`. */
  readonly rpcs: Set<string>
  /** JSON-RPC methods, and kinds of PubSub subscriptions. */
  readonly methods: Set<string>
  readonly subscriptions: Set<string>
}

export function createProtocol(): Protocol {
  return {
    messages: new Set(),
    fields: new Map(),
    enumValues: new Map(),
    rpcs: new Set(),
    methods: new Set(),
    subscriptions: new Set(),
  }
}

type Block = { readonly kind: 'message' | 'enum' | 'oneof' | 'service' | 'other'; readonly name: string }

const TOKEN = /"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.]*|-?\d+|\S/g
const IDENTIFIER = /^[A-Za-z_]/

/** Adds the declarations of a .proto file. Nested messages are `Outer_Inner`, as generated code names them. */
export function readProtoText(text: string, into: Protocol): void {
  const tokens = text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, ' ').match(TOKEN) ?? []
  const open: Block[] = []
  let statement: string[] = []
  for (const token of tokens) {
    if (token === '{') {
      open.push(blockOf(statement, open, into))
      statement = []
    } else if (token === '}') {
      open.pop()
      statement = []
    } else if (token === ';') {
      readStatement(statement, open, into)
      statement = []
    } else statement.push(token)
  }
}

function blockOf(statement: readonly string[], open: readonly Block[], into: Protocol): Block {
  const [keyword, name = ''] = statement
  if (keyword === 'message') {
    const qualified = [messageOf(open), name].filter((part) => part !== '').join('_')
    into.messages.add(qualified)
    return { kind: 'message', name: qualified }
  }
  if (keyword === 'enum') return { kind: 'enum', name: [messageOf(open), name].filter((part) => part !== '').join('_') }
  if (keyword === 'oneof') return { kind: 'oneof', name: messageOf(open) }
  if (keyword === 'service') return { kind: 'service', name }
  // A method may end with a block of options instead of a semicolon.
  readStatement(statement, open, into)
  return { kind: 'other', name: '' }
}

function readStatement(statement: readonly string[], open: readonly Block[], into: Protocol): void {
  const inside = open.at(-1)
  const [first = '', second = ''] = statement
  if (inside?.kind === 'service' && first === 'rpc') into.rpcs.add(`${inside.name}/${second}`)
  const equals = statement.indexOf('=')
  const name = statement[equals - 1] ?? ''
  const number = Number(statement[equals + 1])
  if (equals < 1 || !IDENTIFIER.test(name) || !Number.isInteger(number)) return
  if (first === 'option' || first === 'reserved' || first === 'extensions') return
  if (inside?.kind === 'enum') into.enumValues.set(`${inside.name}.${name}`, number)
  else if (inside?.kind === 'message' || inside?.kind === 'oneof') into.fields.set(`${inside.name}.${name}`, number)
}

function messageOf(open: readonly Block[]): string {
  return open.findLast(({ kind }) => kind === 'message')?.name ?? ''
}
