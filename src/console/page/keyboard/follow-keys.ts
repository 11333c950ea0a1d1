import { focusSearch } from '../../../ui/focus-search.ts'
import { createKeyReader } from '../../model/keys.ts'
import { mayDo, permissionOf } from '../../model/navigation.ts'
import { goTo } from '../go-to.ts'
import type { Store } from '../store.ts'

/** Follows the keys of the console; returns how to stop. */
export function followKeys({ session, overlay }: Store): () => void {
  const read = createKeyReader()
  const press = (event: KeyboardEvent): void => {
    const current = session.value
    // An open dialog has the keyboard to itself.
    if (current.kind !== 'signed-in' || document.querySelector('dialog[open]') !== null) return
    const field = event.target instanceof Element ? event.target.closest('input, textarea, select') : null
    const action = read({
      key: event.key,
      isCommand: event.ctrlKey || event.metaKey,
      isAlt: event.altKey,
      isTyping: field !== null,
      atMs: event.timeStamp,
    })
    if (action === undefined) return
    if (action.kind === 'search') return focusSearch(event)
    event.preventDefault()
    if (action.kind !== 'view') overlay.value = action.kind
    else if (mayDo(current.session.role, permissionOf(action.view))) goTo({ view: action.view })
  }
  addEventListener('keydown', press)
  return () => removeEventListener('keydown', press)
}
