import { useSignal } from '@preact/signals'
import { CopyButton } from '../../../ui/copy-button.tsx'
import {
  closeDocs,
  type DocsLocation,
  type Example,
  FILTERS,
  kindDocs,
  type RouteDoc,
  RPC_METHODS,
  rawEventDocs,
  routeDocs,
  streamExamples,
  WS_PATHS,
} from '../../model/api-docs.ts'
import { useStore } from '../store.ts'

/** Characters shown of a live response. */
const SHOWN_MAX = 4000

const NO_CONTRACT = `0x${'00'.repeat(20)}`

/** The API documentation, generated from the contract, with examples for this service. */
export function ApiView() {
  const { service, model } = useStore()
  const base = service.base.href.replace(/\/$/, '')
  const docsLocation: DocsLocation = {
    http: base,
    ws: base.replace(/^http/, 'ws'),
    // Fixed while the page is open, so that examples do not change while they are copied.
    block: useSignal(model.blocks.newest() ?? 1).value,
    contract: useSignal(model.tops.slots()[0]?.address ?? NO_CONTRACT).value,
    clientUrl: `${base}/page/execution-stream.js`,
  }
  return (
    <main class="api">
      <h1>API</h1>
      <p class="lead-text">
        The live page uses this API: a WebSocket stream, HTTP reads, and JSON-RPC over the last blocks. The examples use
        the address of this service and work as copied. Machine-readable: <a href="page/openapi.json">OpenAPI</a> and{' '}
        <a href="page/asyncapi.json">AsyncAPI</a>.
      </p>
      <StreamDocs location={docsLocation} />
      <EventDocs />
      <section aria-labelledby="api-http">
        <h2 id="api-http">HTTP</h2>
        {routeDocs(docsLocation).map((doc) => (
          <RouteCard key={`${doc.method} ${doc.path}`} doc={doc} />
        ))}
      </section>
      <section aria-labelledby="api-rpc">
        <h2 id="api-rpc">Methods of POST /</h2>
        <ul class="methods">
          {RPC_METHODS.map((method) => (
            <li key={method} class="hex">
              {method}
            </li>
          ))}
        </ul>
      </section>
    </main>
  )
}

function StreamDocs({ location }: { location: DocsLocation }) {
  const { model, samples, version } = useStore()
  void version.value
  const hello = model.facts().hello
  return (
    <section aria-labelledby="api-stream">
      <h2 id="api-stream">Stream</h2>
      <p>
        WebSocket on{' '}
        {WS_PATHS.map((path, at) => (
          <span key={path}>
            {at > 0 && ', '}
            <code>{path}</code>
          </span>
        ))}
        . Each frame is one JSON object: <code>seq</code>, then its kind. Without parameters a client gets the four
        kinds marked as default; <code>?subscribe=</code> selects kinds, <code>?resume_from=</code> continues after a
        sequence number. Every loss is reported in a <code>Warning</code> frame.
      </p>
      <Examples examples={streamExamples(location)} />
      <h3>Kinds, with the newest frame of each</h3>
      {kindDocs().map(({ kind, when, isDefault }) => (
        <details key={kind} class="kind">
          <summary>
            <code>{kind}</code> <span class="dim">{when}</span> {isDefault && <span class="tag">default</span>}
          </summary>
          <Code
            text={samples.has(kind) ? JSON.stringify(samples.get(kind), null, 2) : 'No frame of this kind yet.'}
            label={`Newest ${kind} frame`}
          />
        </details>
      ))}
      {hello !== undefined && (
        <details class="kind">
          <summary>
            <code>Hello</code>{' '}
            <span class="dim">The first frame of each connection: limits in force, cursor, subscription.</span>
          </summary>
          <Code text={JSON.stringify({ seq: 0, Hello: hello }, null, 2)} label="Hello of this page" />
        </details>
      )}
    </section>
  )
}

function EventDocs() {
  const { model, version } = useStore()
  void version.value
  return (
    <section aria-labelledby="api-events">
      <h2 id="api-events">Raw events</h2>
      <p>
        Clients that subscribe to ring events get them in <code>Events</code> frames, for example{' '}
        <code>?subscribe=BlockStart,TxnLog</code>. The extended form of <code>subscribe</code> filters by{' '}
        {FILTERS.map((filter, at) => (
          <span key={filter}>
            {at > 0 && ', '}
            <code>{filter}</code>
          </span>
        ))}
        .
      </p>
      <ul class="methods">
        {rawEventDocs(model.facts().hello?.blocked_events).map(({ name, isOffered }) => (
          <li key={name} class="hex">
            {name} {!isOffered && <span class="tag">not offered here</span>}
          </li>
        ))}
      </ul>
      <h3>Close codes</h3>
      <table class="plain-table">
        <tbody>
          {closeDocs().map(({ code, why }) => (
            <tr key={code}>
              <th scope="row" class="number">
                {code}
              </th>
              <td class="wrap">{why}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function RouteCard({ doc }: { doc: RouteDoc }) {
  const { service } = useStore()
  const reply = useSignal<{ status: string; text: string } | undefined>(undefined)
  const send = async (path: string): Promise<void> => {
    const startedMs = performance.now()
    try {
      const init =
        doc.body === undefined
          ? {}
          : { method: 'POST', body: doc.body, headers: { 'content-type': 'application/json' } }
      const response = await fetch(new URL(path, service.base), {
        ...init,
        headers: { ...init.headers, ...service.headers() },
      })
      const text = pretty(await response.text())
      reply.value = { status: `${response.status} in ${Math.round(performance.now() - startedMs)} ms`, text }
    } catch {
      reply.value = { status: 'not reachable', text: '' }
    }
  }
  const { tryPath } = doc
  return (
    <article class="route">
      <h3>
        <span class={`method method-${doc.method.toLowerCase()}`}>{doc.method}</span> <code>{doc.path}</code>
        {doc.open && <span class="tag">always open</span>}
      </h3>
      <p>{doc.brief}</p>
      <Examples examples={doc.examples} />
      {tryPath !== undefined && (
        <button type="button" class="try" onClick={() => void send(tryPath)}>
          Try it
          <span class="sr">
            {' '}
            {doc.method} {doc.path}
          </span>
        </button>
      )}
      {reply.value !== undefined && (
        <div class="response">
          <p class="dim number" role="status">
            {reply.value.status}
          </p>
          <Code text={reply.value.text} label={`Response of ${doc.path}`} />
        </div>
      )}
    </article>
  )
}

function Examples({ examples }: { examples: readonly Example[] }) {
  return (
    <div class="examples">
      {examples.map(({ tool, text }) => (
        <div key={tool} class="example">
          <span class="tool">{tool}</span>
          <Code text={text} label={`${tool} example`} copy />
        </div>
      ))}
    </div>
  )
}

function Code({ text, label, copy = false }: { text: string; label: string; copy?: boolean }) {
  return (
    <div class="code">
      {/* Focusable, so that long lines scroll by keyboard. */}
      <pre tabIndex={0} role="region" aria-label={label}>
        {text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}\n… ${text.length - SHOWN_MAX} characters more` : text}
      </pre>
      {copy && (
        <CopyButton class="copy" text={() => text} label={`Copy ${label}`}>
          Copy
        </CopyButton>
      )}
    </div>
  )
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
