import { useSignal } from '@preact/signals'
import { CopyButton } from '../../../ui/copy-button.tsx'
import { Panel } from '../../../ui/panel.tsx'
import { MASKED_TOKEN, pasteLines } from '../../paste-lines.ts'
import type { AccountRecord } from '../../wire.ts'
import { useStore } from '../store.ts'

/** Lines to paste, without the token unless the customer chooses otherwise: a screen may be shared. */
export function PasteLines({ account: { endpoints, products } }: { account: AccountRecord }) {
  const { token } = useStore()
  const isShown = useSignal(false)
  const given = isShown.value ? token() : MASKED_TOKEN
  return (
    <Panel
      id="addresses"
      title="Addresses"
      aside={
        <label class="check">
          <input
            type="checkbox"
            checked={isShown.value}
            onChange={(event) => (isShown.value = event.currentTarget.checked)}
          />
          with token
        </label>
      }
    >
      <p class="dim">
        {isShown.value
          ? 'The lines contain your token: keep them out of chats, tickets and repositories.'
          : `Set the variable first: export SLUICE_TOKEN=… with the token of your card.`}
      </p>
      <div class="paste">
        {pasteLines({ endpoints, products, origin: location.origin, token: given }).map(({ id, title, note, text }) => (
          <div key={id} data-line={id}>
            <h3>
              {title} <span class="dim">{note}</span>
            </h3>
            <div class="code">
              <pre tabIndex={0} aria-label={title}>
                {text}
              </pre>
              <CopyButton class="copy" label={`Copy ${title}`} text={() => text}>
                Copy
              </CopyButton>
            </div>
          </div>
        ))}
      </div>
    </Panel>
  )
}
