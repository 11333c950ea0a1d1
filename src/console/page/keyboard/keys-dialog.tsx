import { VIEW_KEYS } from '../../model/keys.ts'
import { viewsOf } from '../../model/navigation.ts'
import { useStore } from '../store.ts'
import { Modal } from '../ui/modal.tsx'

const GENERAL: readonly (readonly [string, readonly string[]])[] = [
  ['Search customers and subscriptions', ['/']],
  ['Go to a view, customer or subscription', ['Ctrl', 'K']],
  ['Close a dialog', ['Esc']],
  ['Show these keys', ['?']],
]

/** The keys of the console. */
export function KeysDialog() {
  const { overlay, session } = useStore()
  const current = session.value
  if (current.kind !== 'signed-in') return null
  const close = () => (overlay.value = undefined)
  const views = viewsOf(current.session.role).map(({ view, title }) => [title, ['g', VIEW_KEYS[view]]] as const)
  return (
    <Modal class="keys" titleId="keys-title" isLight onClose={close}>
      <h2 id="keys-title">Keys</h2>
      <div class="keys-lists">
        {[GENERAL, views].map((rows, at) => (
          <dl key={at === 0 ? 'general' : 'views'}>
            {rows.map(([text, keys]) => (
              <div key={text}>
                <dt>{text}</dt>
                <dd>
                  {keys.map((key) => (
                    <kbd key={key}>{key}</kbd>
                  ))}
                </dd>
              </div>
            ))}
          </dl>
        ))}
      </div>
      <p class="dialog-buttons">
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </p>
    </Modal>
  )
}
