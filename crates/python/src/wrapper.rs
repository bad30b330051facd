//! The callable that replaces a decorated function.
//!
//! It uses CPython's own interface because PyO3's classes support neither vectorcall nor the flag that lets the interpreter call
//! a method without making a bound-method object first. Everything that is not needed for a call is looked up in the function
//! (attributes) or written in Python (`weftline._wrapping`: pickling, copying).
//!
//! Two types: [`WrapperKind::Method`] for what binds as functions do, [`WrapperKind::Other`] for every other callable.
#![allow(unsafe_code, reason = "a type made with CPython's interface")]

mod call;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::offset_of;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use weftline::front;

use crate::name::Site;
use crate::plan::{Capture, Given, Plan};

/// The object. CPython fills new ones with zeros, which stand for "not there".
#[repr(C)]
struct Wrapper {
    head: ffi::PyObject,
    /// Where CPython finds the function to call; only used since 3.12.
    vectorcall: *const c_void,
    function: *mut ffi::PyObject,
    /// From an `Arc`, null until the object is complete.
    plan: *const Plan,
    /// [`Plan::is_plain`]: decided once.
    plain: bool,
    attributes: *mut ffi::PyObject,
    weak_references: *mut ffi::PyObject,
}

/// How the object behaves as an attribute of a class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WrapperKind {
    /// Binds like a function: `instance.name(x)` calls `function(instance, x)`.
    Method,
    /// Binds like the callable that it wraps, which may not bind at all.
    Other,
}

static METHOD: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static OTHER: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The types belong to the interpreter that made them, and there is one set of them.
pub(crate) fn refuse_subinterpreters() -> PyResult<()> {
    // SAFETY: called while a module is imported, so with an interpreter attached.
    let id = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if id == 0 {
        return Ok(());
    }
    Err(PyImportError::new_err("weftline does not work in subinterpreters; import it in the main interpreter only"))
}

/// Puts the types into the module.
pub(crate) fn add_types(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("TracedFunction", type_of(py, WrapperKind::Method)?)?;
    module.add("TracedCallable", type_of(py, WrapperKind::Other)?)
}

fn type_of(py: Python<'_>, kind: WrapperKind) -> PyResult<&Bound<'_, PyType>> {
    let cell = if kind == WrapperKind::Method { &METHOD } else { &OTHER };
    cell.get_or_try_init(py, || make_type(py, kind)).map(|made| made.bind(py))
}

fn slot(slot: c_int, pfunc: *const c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc: pfunc.cast_mut() }
}

fn member(name: &'static CStr, offset: usize) -> ffi::PyMemberDef {
    ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: ffi::Py_T_PYSSIZET,
        offset: offset as ffi::Py_ssize_t,
        flags: ffi::Py_READONLY,
        doc: null(),
    }
}

fn make_type(py: Python<'_>, kind: WrapperKind) -> PyResult<Py<PyType>> {
    // CPython keeps pointers to these for the life of the type, which is that of the process.
    let members = Box::leak(Box::new([
        member(c"__dictoffset__", offset_of!(Wrapper, attributes)),
        member(c"__weaklistoffset__", offset_of!(Wrapper, weak_references)),
        #[cfg(Py_3_12)]
        member(c"__vectorcalloffset__", offset_of!(Wrapper, vectorcall)),
        ffi::PyMemberDef::default(),
    ]));
    let attributes = Box::leak(Box::new([
        ffi::PyGetSetDef { name: c"__dict__".as_ptr(), get: Some(attributes), ..Default::default() },
        #[cfg(not(Py_3_12))]
        ffi::PyGetSetDef { name: c"__class__".as_ptr(), get: Some(class), ..Default::default() },
        ffi::PyGetSetDef::default(),
    ]));
    let (name, bind, flag) = match kind {
        WrapperKind::Method => {
            (c"weftline.TracedFunction", bind_function as *const c_void, ffi::Py_TPFLAGS_METHOD_DESCRIPTOR)
        }
        WrapperKind::Other => (c"weftline.TracedCallable", bind_callable as *const c_void, 0),
    };
    #[cfg(Py_3_12)]
    let (call, flag) = (ffi::PyVectorcall_Call as *const c_void, flag | ffi::Py_TPFLAGS_HAVE_VECTORCALL);
    #[cfg(not(Py_3_12))]
    let call = call::call as *const c_void;
    let slots = &mut [
        slot(ffi::Py_tp_doc, c"A function whose calls are recorded.".as_ptr().cast()),
        slot(ffi::Py_tp_new, refuse_new as *const c_void),
        slot(ffi::Py_tp_dealloc, dealloc as *const c_void),
        slot(ffi::Py_tp_traverse, traverse as *const c_void),
        slot(ffi::Py_tp_clear, clear as *const c_void),
        slot(ffi::Py_tp_call, call),
        slot(ffi::Py_tp_descr_get, bind),
        slot(ffi::Py_tp_getattro, get_attribute as *const c_void),
        slot(ffi::Py_tp_members, members.as_ptr().cast()),
        slot(ffi::Py_tp_getset, attributes.as_ptr().cast()),
        ffi::PyType_Slot::default(),
    ];
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        basicsize: size_of::<Wrapper>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_HAVE_GC | flag) as c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the slots' functions have the signatures that CPython asks of them, the list ends with an empty slot, and members and
    // attributes live forever. The result is a new reference to a type, or null with an exception set.
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec))?.cast_into_unchecked().unbind()) }
}

/// Wraps `function`, so that its calls are recorded. See `weftline._wrapping`, which finds out what to say here.
#[pyfunction]
#[pyo3(signature = (function, name, category, *, kind=0, id=None, usage=false, parameters=None, rest=None, others=false, extra=None, driver=None, steps=false))]
#[allow(clippy::too_many_arguments, reason = "a Python function with keyword arguments")]
pub(crate) fn traced<'py>(
    function: &Bound<'py, PyAny>,
    name: String,
    category: String,
    kind: u32,
    id: Option<u64>,
    usage: bool,
    parameters: Option<Vec<Given<'py>>>,
    rest: Option<String>,
    others: bool,
    extra: Option<Py<PyDict>>,
    driver: Option<Py<PyAny>>,
    steps: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if !function.is_callable() {
        let kind = function.get_type().name()?;
        return Err(PyTypeError::new_err(format!("only callables can be traced, not {kind} objects")));
    }
    let Some(kind) = front::EventKind::ALL.get(kind as usize).copied() else {
        return Err(PyTypeError::new_err(format!("unknown kind of event: {kind}")));
    };
    let capture = parameters.map(|parameters| Capture::new(parameters, rest, others)).transpose()?;
    let plan = Plan { id, usage, capture, extra, driver, steps, ..Plan::new(Site::new(name, category), kind) };
    // SAFETY: asks an object for its type's flags.
    let flags = unsafe { ffi::PyType_GetFlags(ffi::Py_TYPE(function.as_ptr())) };
    let binds_like_function = flags & ffi::Py_TPFLAGS_METHOD_DESCRIPTOR != 0;
    make(function, Arc::new(plan), if binds_like_function { WrapperKind::Method } else { WrapperKind::Other })
}

fn make<'py>(function: &Bound<'py, PyAny>, plan: Arc<Plan>, kind: WrapperKind) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let of_type = type_of(py, kind)?;
    // SAFETY: a new object of our type is a `Wrapper` full of zeros, which becomes complete here.
    unsafe {
        let object = Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(of_type.as_type_ptr(), 0))?;
        let wrapper = object.as_ptr().cast::<Wrapper>();
        #[cfg(Py_3_12)]
        {
            (*wrapper).vectorcall = call::vectorcall as *const c_void;
        }
        (*wrapper).function = function.clone().into_ptr();
        (*wrapper).plain = plan.is_plain();
        (*wrapper).plan = Arc::into_raw(plan);
        Ok(object)
    }
}

unsafe extern "C" fn refuse_new(
    _type: *mut ffi::PyTypeObject,
    _args: *mut ffi::PyObject,
    _keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: sets an exception.
    unsafe { ffi::PyErr_SetString(ffi::PyExc_TypeError, c"use weftline.trace to make one".as_ptr()) };
    null_mut()
}

unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    let wrapper = object.cast::<Wrapper>();
    // SAFETY: CPython calls this once, when nobody refers to the object any more; `plan` came from an `Arc`. Types made from a
    // specification belong to their objects, and are released after them.
    unsafe {
        ffi::PyObject_GC_UnTrack(object.cast());
        if !(*wrapper).weak_references.is_null() {
            ffi::PyObject_ClearWeakRefs(object);
        }
        clear(object);
        let plan = std::mem::replace(&mut (*wrapper).plan, null());
        if !plan.is_null() {
            drop(Arc::from_raw(plan));
        }
        let of_type = ffi::Py_TYPE(object);
        ffi::PyObject_GC_Del(object.cast());
        ffi::Py_DECREF(of_type.cast());
    }
}

unsafe extern "C" fn traverse(object: *mut ffi::PyObject, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    let wrapper = object.cast::<Wrapper>();
    // SAFETY: the object is one of ours; its fields are null or owned references.
    unsafe {
        for referred in [(*wrapper).function, (*wrapper).attributes, ffi::Py_TYPE(object).cast()] {
            if !referred.is_null() {
                let stop = visit(referred, arg);
                if stop != 0 {
                    return stop;
                }
            }
        }
    }
    0
}

unsafe extern "C" fn clear(object: *mut ffi::PyObject) -> c_int {
    let wrapper = object.cast::<Wrapper>();
    // SAFETY: as for `traverse`; each reference is forgotten before it is given up, since giving it up may run code.
    unsafe {
        for field in [&raw mut (*wrapper).function, &raw mut (*wrapper).attributes] {
            ffi::Py_XDECREF(field.replace(null_mut()));
        }
    }
    0
}

/// `__dict__`.
unsafe extern "C" fn attributes(object: *mut ffi::PyObject, _closure: *mut c_void) -> *mut ffi::PyObject {
    let wrapper = object.cast::<Wrapper>();
    // SAFETY: the object is one of ours; a new reference is returned.
    unsafe {
        if (*wrapper).attributes.is_null() {
            (*wrapper).attributes = ffi::PyDict_New();
        }
        ffi::Py_XINCREF((*wrapper).attributes);
        (*wrapper).attributes
    }
}

/// `__class__`. Python 3.9 asks it whether something is a coroutine or generator function; later versions ask for `__code__` and its
/// like. It is not the function's class where nobody needs that: cloudpickle would send the function and leave the tracing out.
#[cfg(not(Py_3_12))]
unsafe extern "C" fn class(object: *mut ffi::PyObject, _closure: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this with the interpreter attached and an object of ours; a new reference is returned.
    unsafe {
        let wrapper = &*object.cast::<Wrapper>();
        let special = !wrapper.function.is_null() && wrapper.plan.as_ref().is_some_and(|plan| plan.driver.is_some());
        let pretend = special && Python::assume_attached().version_info() < (3, 10);
        let class = ffi::Py_TYPE(if pretend { wrapper.function } else { object }).cast();
        ffi::Py_INCREF(class);
        class
    }
}

/// What the object does not have, the function has: `__code__`, `__defaults__`, `cache_info` and so on.
unsafe extern "C" fn get_attribute(object: *mut ffi::PyObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let wrapper = object.cast::<Wrapper>();
    // SAFETY: the object is one of ours, `name` is a text, and an exception is looked at only where the look-up failed.
    unsafe {
        let found = ffi::PyObject_GenericGetAttr(object, name);
        if found.is_null()
            && !(*wrapper).function.is_null()
            && ffi::PyErr_ExceptionMatches(ffi::PyExc_AttributeError) != 0
        {
            ffi::PyErr_Clear();
            return ffi::PyObject_GetAttr((*wrapper).function, name);
        }
        found
    }
}

/// `__get__` of what binds like a function. Most calls of methods never come here: see the flag METHOD_DESCRIPTOR.
unsafe extern "C" fn bind_function(
    object: *mut ffi::PyObject,
    instance: *mut ffi::PyObject,
    _owner: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    static BOUND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    // SAFETY: CPython calls this with the interpreter attached; `instance` is null, None or an object.
    unsafe {
        if instance.is_null() || instance == ffi::Py_None() {
            ffi::Py_INCREF(object);
            return object;
        }
        let py = Python::assume_attached();
        match BOUND.import(py, "types", "MethodType") {
            Ok(bound) => ffi::PyObject_CallFunctionObjArgs(bound.as_ptr(), object, instance, null_mut::<c_char>()),
            Err(error) => {
                error.restore(py);
                null_mut()
            }
        }
    }
}

/// `__get__` of other callables: what the callable itself becomes when it is bound, recorded in the same way.
unsafe extern "C" fn bind_callable(
    object: *mut ffi::PyObject,
    instance: *mut ffi::PyObject,
    owner: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let wrapper = object.cast::<Wrapper>();
    // SAFETY: as above; the plan is that of a complete object, and cloning it leaves its own count as it was.
    unsafe {
        let py = Python::assume_attached();
        let object = Bound::from_borrowed_ptr(py, object);
        let function = Bound::from_borrowed_ptr(py, (*wrapper).function);
        let Ok(get) = function.get_type().getattr("__get__") else { return object.into_ptr() };
        let or_none = |given: *mut ffi::PyObject| Bound::from_borrowed_ptr_or_opt(py, given);
        let bound = get.call1((&function, or_none(instance), or_none(owner))).and_then(|bound| {
            if bound.is(&function) || !bound.is_callable() {
                return Ok(if bound.is(&function) { object } else { bound });
            }
            Arc::increment_strong_count((*wrapper).plan);
            make(&bound, Arc::from_raw((*wrapper).plan), WrapperKind::Other)
        });
        match bound {
            Ok(bound) => bound.into_ptr(),
            Err(error) => {
                error.restore(py);
                null_mut()
            }
        }
    }
}
