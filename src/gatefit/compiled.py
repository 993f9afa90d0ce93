"""Kernels: numba's ``njit``, whose cache on disk is a convenience and never a condition.

    kept       NUMBA_CACHE_DIR, else __pycache__ beside the source, else the user's cache folder: the first that can be
               written; none of them: compiled in every process
    read       from there, else from NUMBA_CACHE_DIR and __pycache__ as somebody else left them: who made an image, or
               installed the package

numba itself refuses to define a cached function where it finds no writable folder, as in a container with a read-only
file system, ends a call whose machine code it cannot store, and does not read a folder that it cannot write. Every
kernel is decorated with the ``njit`` of this module instead.
"""

import gc
import operator
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numba
from numba.core import (
    caching,
    codegen,
    compiler,
    compiler_lock,
    event,
    ir,
    registry,
    targetconfig,
    typed_passes,
    types,
    untyped_passes,
)

# Typed in some versions of numba only, and there not in full.
_config: Any = numba.config
_event: Any = event
_Dispatcher: Any = registry.CPUDispatcher
_FunctionCache: Any = caching.FunctionCache
_CompileResultCacheImpl: Any = caching.CompileResultCacheImpl
_Library: Any = codegen.JITCodeLibrary
_Compiler: Any = compiler.Compiler
_compiler_lock: Any = compiler_lock.global_compiler_lock
_Function: Any = types.Function
_ConfigStack: Any = targetconfig.ConfigStack
_TargetConfig: Any = targetconfig.TargetConfig
_Instruction: Any = ir.Inst
_Variable: Any = ir.Var
_WITHOUT_VARIABLES: Final[frozenset[type]] = frozenset({str, int, type(None), ir.Loc, ir.Const, ir.Global})
_NOT_FOR_PLAIN: Final[frozenset[Any]] = frozenset(
    {
        untyped_passes.WithLifting,
        untyped_passes.InlineClosureLikes,
        untyped_passes.MakeFunctionToJitFunction,
        untyped_passes.InlineInlinables,
        untyped_passes.LiteralUnroll,
        untyped_passes.LiteralPropagationSubPipelinePass,
        typed_passes.InlineOverloads,
        typed_passes.NopythonRewrites,
    }
)


class _Cache(_FunctionCache):  # type: ignore[misc]
    """Machine code on disk: what cannot be read is compiled, what cannot be written is not kept."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function of a signature, or None."""
        try:
            return super().load_overload(sig, target_context)
        except OSError:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if there is room."""
        with suppress(OSError):
            super().save_overload(sig, data)

    def serves(self, processor: Any) -> bool:
        """Whether it holds the function for this processor, whatever the types."""
        try:
            return any(key[1] == processor for key in self._cache_file._load_index())
        except Exception:  # a damaged index, or a later form of it: it will be compiled, and that is all
            return False


def _left_by_others(name: str) -> type[_Cache] | None:
    """A cache in the folder of one of numba's locators that can be read and not written."""
    locator: Any = getattr(caching, name, None) or getattr(caching, f"_{name}", None)  # as older versions call it
    if locator is None:
        return None

    class Reading(locator):  # type: ignore[misc]
        @classmethod
        def from_function(cls, py_func: Any, py_file: Any) -> Any:
            if "UserProvided" in name and not _config.CACHE_DIR:
                return None
            here = cls(py_func, py_file)
            path = here.get_cache_path()
            return here if Path(path).is_dir() and not os.access(path, os.W_OK) else None

    class Form(_CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (Reading,)

    class LeftByOthers(_Cache):
        _impl_class = Form

        def save_overload(self, sig: Any, data: Any) -> None:
            """Nothing can be kept here."""

    return LeftByOthers


_READ_ONLY: Final[tuple[type[_Cache], ...]] = tuple(
    kind for kind in map(_left_by_others, ("UserProvidedCacheLocator", "InTreeCacheLocator")) if kind is not None
)


class _Caches:
    """What numba asks for: the cache that can be written, if there is one, and what others left to read."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.parts: list[_Cache] = []
        kinds: tuple[type[_Cache], ...] = (_Cache, *_READ_ONLY)
        for kind in kinds:
            with suppress(RuntimeError, OSError):  # "no locator available": no such folder
                self.parts.append(kind(function))

    @property
    def cache_path(self) -> str | None:
        """The folder that is written."""
        return self.parts[0].cache_path if self.parts else None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function of a signature, or None."""
        for part in self.parts:
            found = part.load_overload(sig, target_context)
            if found is not None:
                return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function where that is possible."""
        if self.parts:
            self.parts[0].save_overload(sig, data)

    def enable(self) -> None:
        """Read and write."""
        for part in self.parts:
            part.enable()

    def disable(self) -> None:
        """Neither read nor write."""
        for part in self.parts:
            part.disable()

    def flush(self) -> None:
        """Forget what was kept."""
        if self.parts:
            self.parts[0].flush()


def is_compiled(dispatcher: Any) -> bool:
    """Whether a kernel has machine code for this processor, in this process or on the disk; for some types at least."""
    if getattr(dispatcher, "overloads", True):  # a plain function, with NUMBA_DISABLE_JIT, has nothing to wait for
        return True
    cache = dispatcher._cache
    if not isinstance(cache, _Caches):
        return False
    processor = dispatcher.targetctx.codegen().magic_tuple()
    return any(part.serves(processor) for part in cache.parts)


def njit(
    *,
    cache: bool = False,
    inner: bool = False,
    plain: bool = False,
    views: bool = False,
    optional: bool = False,
    **options: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` with these options; ``cache`` keeps the machine code where a folder can be written.

    ``inner`` functions are called by kernels, and only become machine code as a part of them: what Python would need
    to call one is made when Python does. They are kept with the kernels.
    They make no arrays, and return none unless they say ``views``: so nobody counts references, which is a quarter
    of the code that LLVM is given.

    ``plain`` kernels make and return none either, and are loops over numbers and arrays, without arithmetic of whole
    arrays, functions in functions, branches on types or places in tuples of several types, which are taken apart at
    once instead: the steps of numba that look for these are left out. ``optional``: but an argument may be None, and
    what is there for it otherwise is not compiled then; and places in tuples are allowed.
    """
    # Nobody hands kernels to C.
    pipeline = (_InnerCompiler, _OptionalInnerCompiler) if inner else (_KernelCompiler, _OptionalKernelCompiler)
    options = {"no_cfunc_wrapper": True, "pipeline_class": pipeline[optional], **options}
    if inner:
        options["no_cpython_wrapper"] = True
    if (inner or plain) and not views:
        options["_nrt"] = False
    if plain and not optional:
        options["no_rewrites"] = True

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(**options)(function)
        if dispatcher is function:  # as it is with NUMBA_DISABLE_JIT
            return function
        dispatcher.__class__ = _Inner if inner else _Kernel
        if cache and not inner:
            dispatcher._cache = _Caches(function)
        return dispatcher

    return compiled


class _Resolutions:
    """What numba finds when it asks which of its functions serves an operation on certain types.

    It asks for every operation of every function, and again whenever the types become clearer, and tries one
    implementation after the other each time. Here the first answer stands for all functions of the same flags.
    """

    def __init__(self, context: Any) -> None:
        self._resolve = context.resolve_function_type
        self._type_of = context._lookup_global
        self._found: dict[Any, Any] = {}
        self._flags: list[dict[str, Any]] = []

    def set_item(self, target: Any, index: Any, value: Any) -> Any:
        """``BaseContext.resolve_setitem``."""
        return self(self._type_of(operator.setitem), (target, index, value), {})

    def __call__(self, function: Any, arguments: Any, keywords: Any) -> Any:
        """``BaseContext.resolve_function_type``."""
        if function is operator.getitem:
            function = self._type_of(operator.getitem)
        flags = _ConfigStack.top_or_none()
        if keywords or flags is None or type(function) is not _Function:
            return self._resolve(function, arguments, keywords)
        key = self._kind(flags), function, *arguments
        if key in self._found:
            signature, implementation = self._found[key]
            # A kernel that was compiled meanwhile has left its own, of other flags.
            function._impl_keys[signature.args] = implementation
            return signature
        signature = self._resolve(function, arguments, keywords)
        if signature is not None:
            self._found[key] = signature, function.get_impl_key(signature)
        return signature

    def _kind(self, flags: Any) -> int:
        """A number for flags of these values: there are a handful."""
        values = flags._values
        for number, known in enumerate(self._flags):
            if known == values:
                return number
        self._flags.append(dict(values))
        return len(self._flags) - 1


_resolutions: Final[dict[Any, _Resolutions]] = {}
"""By numba's context, of which there is one."""

_defaults: Final[dict[Any, dict[str, Any]]] = {}


def _values_of_flags(flags: Any) -> dict[str, Any]:
    """``TargetConfig.values``: what was set, else the default, of some thirty options."""
    kind: Any = type(flags)
    if kind not in _defaults:
        _defaults[kind] = {name: option.default for name, option in kind.options.items()}
    return {**_defaults[kind], **flags._values}


def _same_flags(one: Any, other: Any) -> Any:
    """``TargetConfig.__eq__``, by what was set if that decides."""
    if not isinstance(other, _TargetConfig):
        return NotImplemented
    return one._values == other._values or one.values() == other.values()


_hashes: Final[dict[Any, int]] = {}


def _hash_of_flags(flags: Any) -> int:
    """``TargetConfig.__hash__``, which is that of the options' names."""
    kind: Any = type(flags)
    if kind not in _hashes:
        _hashes[kind] = hash(tuple(sorted(kind.options)))
    return _hashes[kind]


def _list_variables(instruction: Any, value: Any) -> list[Any]:
    """``Inst._rec_list_vars``: the variables in a value, in order, with less asking for what most values are not."""
    found: list[Any] = []
    for each in value.values() if isinstance(value, dict) else value:
        kind = type(each)
        if kind is _Variable:
            found.append(each)
        elif kind in _WITHOUT_VARIABLES:
            continue
        elif isinstance(each, _Instruction):
            found += each.list_vars()
        elif isinstance(each, (list, tuple, dict)):
            found += _list_variables(instruction, each)
    return found


def _unless_of_lock(tell: Any) -> Any:
    """An announcement of numba's, but for those of LLVM's lock: two a call, which only numba's clocks hear."""

    def announced(kind: str, *details: Any, **more: Any) -> None:
        if kind != "numba:llvm_lock":
            tell(kind, *details, **more)

    return announced


def _without_linear_algebra() -> None:
    """``linalg.ensure_blas``, asked once, when numba's functions of arrays are imported: is scipy there?

    To import its ``linalg`` takes as long as to compile a kernel. numba does so again where a kernel calls it.
    """
    if find_spec("scipy") is None:
        raise ImportError("scipy is required for linear algebra")


_START: Final = _unless_of_lock(_event.start_event)
_END: Final = _unless_of_lock(_event.end_event)


@contextmanager
def _replaced(owner: Any, **functions: Any) -> Iterator[None]:
    """These functions of a class or a module for as long as it lasts."""
    before = {name: getattr(owner, name) for name in functions}
    for name, function in functions.items():
        setattr(owner, name, function)
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(owner, name, function)


@contextmanager
def _at_once(context: Any) -> Iterator[None]:
    """What numba does inside takes a third less time, for the same machine code.

    It makes millions of small objects that live until it is done: looking through them for garbage waits till then.
    """
    with _compiler_lock:
        collects = gc.isenabled()
        gc.disable()
        if context not in _resolutions:
            from numba.np import linalg

            with _replaced(linalg, ensure_blas=_without_linear_algebra):
                from numba.np import arraymath  # noqa: F401
            _resolutions[context] = _Resolutions(context)
        context.resolve_function_type = _resolutions[context]
        context.resolve_setitem = _resolutions[context].set_item
        try:
            with (
                _replaced(_TargetConfig, __eq__=_same_flags, __hash__=_hash_of_flags, values=_values_of_flags),
                _replaced(_Instruction, _rec_list_vars=_list_variables),
                _replaced(_event, start_event=_START, end_event=_END),
            ):
                yield
        finally:
            del context.resolve_function_type, context.resolve_setitem
            if collects:
                gc.enable()


class _Kernel(_Dispatcher):  # type: ignore[misc]
    """A function that Python calls."""

    def compile(self, signature: Any) -> Any:
        """Machine code for these types."""
        if "resolve_function_type" in vars(self.typingctx):  # as a part of another one
            return super().compile(signature)
        with _at_once(self.typingctx):
            return super().compile(signature)


class _Part(_Library):  # type: ignore[misc]
    """LLVM's form of a function that is linked into others, which make machine code of it."""

    left = False
    """To be optimised by who links it."""

    def _optimize_final_module(self) -> None:
        """Where that pays: kernels of long loops are faster if what they call was optimised by itself before."""
        if not self.left:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        """Ready to be linked, which is all."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _KernelCompiler(_Compiler):  # type: ignore[misc]
    """numba's compiler, without what plain kernels have no need of."""

    plain_but_optional = False

    def define_pipelines(self) -> Any:
        """Its passes."""
        managers = super().define_pipelines()
        if self.state.flags.no_rewrites or self.plain_but_optional:
            for manager in managers:
                manager.passes = [each for each in manager.passes if each[0] not in _NOT_FOR_PLAIN]
        return managers


class _InnerCompiler(_KernelCompiler):
    """The same up to where machine code is made."""

    def compile_extra(self, function: Any) -> Any:
        """LLVM's form of a function, known to the functions that call it."""
        state = self.state
        state.flags.no_compile = True
        state.library = _Part(state.targetctx.codegen(), function.__qualname__)
        state.library.left = state.flags.no_rewrites or state.flags.forceinline
        result = super().compile_extra(function)._replace(entry_point=object())
        returned = state.targetctx.data_model_manager[result.signature.return_type]
        if not state.flags.nrt and returned.contains_nrt_meminfo():
            raise TypeError(f"{function.__qualname__} returns an array, whose references nobody counts; say views=True")
        state.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result


class _OptionalKernelCompiler(_KernelCompiler):
    """Without the same, but for the search for branches that an argument of None decides, and for places in tuples."""

    plain_but_optional = True


class _OptionalInnerCompiler(_InnerCompiler):
    """The same for inner functions."""

    plain_but_optional = True


class _Inner(_Dispatcher):  # type: ignore[misc]
    """A function without a way in from Python, but for this one."""

    _from_python: Any = None

    def add_overload(self, result: Any) -> None:
        """For callers that are compiled, and not for Python."""
        self.overloads[tuple(result.signature.args)] = result

    def __call__(self, *arguments: Any) -> Any:
        if self._from_python is None:
            options = {**self.targetoptions, "no_cpython_wrapper": False}
            options.pop("nopython", None)
            self._from_python = numba.njit(**options)(self.py_func)
        return self._from_python(*arguments)


class Compilations:
    """Which of our functions numba compiles, with the processor seconds that are theirs alone.

    What they use of numba's own library is compiled on the way and counts as theirs; what they call of ours does not.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        """By module and name: one number for each set of types."""
        self.folders: set[str] = set()
        """Where they are kept."""
        self._open: list[tuple[float, float]] = []

    def notify(self, event: Any) -> None:
        """A function begins or ends."""
        now = time.process_time()
        if event.is_start:
            self._open.append((now, 0.0))
            return
        begun, inner = self._open.pop()
        dispatcher = event.data["dispatcher"]
        function = dispatcher.py_func
        ours = function.__module__.startswith("gatefit.")
        if self._open:
            self._open[-1] = self._open[-1][0], self._open[-1][1] + (now - begun if ours else inner)
        if ours:
            self.seconds.setdefault(f"{function.__module__}.{function.__qualname__}", []).append(now - begun - inner)
            folder = getattr(dispatcher._cache, "cache_path", None)
            self.folders |= {folder} if folder else set()


@contextmanager
def compilations() -> Iterator[Compilations]:
    """Listen to numba."""
    found = Compilations()
    _event.Listener.register(Compilations)
    _event.register("numba:compile", found)
    try:
        yield found
    finally:
        _event.unregister("numba:compile", found)
