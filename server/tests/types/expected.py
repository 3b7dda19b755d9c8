from __future__ import annotations

import datetime
import uuid
from typing import (
    Annotated,
    Any,
    List,
    Literal,
    Optional,
    TypedDict,
)
from typing_extensions import NotRequired, TypeAlias

from pydantic import BaseModel, Field, JsonValue

ShopState: TypeAlias = Literal["open", "waiting for an answer", "say \"no\"", "closed without any further explanation"]

class ShopEmpty(BaseModel):
    pass

class ShopEmptyInsert(TypedDict):
    pass

class ShopEmptyUpdate(TypedDict):
    pass

class ShopParcel(BaseModel):
    a_state_whose_column_has_a_rather_long_name: Optional[ShopState] = Field(alias="a_state_whose_column_has_a_rather_long_name")
    id: int = Field(alias="id")
    sender_id: int = Field(alias="sender_id")
    size: Optional[float] = Field(alias="size")

class ShopParcelInsert(TypedDict):
    a_state_whose_column_has_a_rather_long_name: NotRequired[Annotated[Optional[ShopState], Field(alias="a_state_whose_column_has_a_rather_long_name")]]
    id: NotRequired[Annotated[int, Field(alias="id")]]
    sender_id: Annotated[int, Field(alias="sender_id")]
    size: NotRequired[Annotated[Optional[float], Field(alias="size")]]

class ShopParcelUpdate(TypedDict):
    a_state_whose_column_has_a_rather_long_name: NotRequired[Annotated[Optional[ShopState], Field(alias="a_state_whose_column_has_a_rather_long_name")]]
    id: NotRequired[Annotated[int, Field(alias="id")]]
    sender_id: NotRequired[Annotated[int, Field(alias="sender_id")]]
    size: NotRequired[Annotated[Optional[float], Field(alias="size")]]

class ShopPassport(BaseModel):
    issued: datetime.datetime = Field(alias="issued")
    number: str = Field(alias="number")
    person_id: int = Field(alias="person_id")

class ShopPassportInsert(TypedDict):
    issued: NotRequired[Annotated[datetime.datetime, Field(alias="issued")]]
    number: Annotated[str, Field(alias="number")]
    person_id: Annotated[int, Field(alias="person_id")]

class ShopPassportUpdate(TypedDict):
    issued: NotRequired[Annotated[datetime.datetime, Field(alias="issued")]]
    number: NotRequired[Annotated[str, Field(alias="number")]]
    person_id: NotRequired[Annotated[int, Field(alias="person_id")]]

class ShopPerson(BaseModel):
    born: Optional[datetime.date] = Field(alias="born")
    email: str = Field(alias="email")
    home: Optional[ShopPlace] = Field(alias="home")
    id: int = Field(alias="id")
    notes: JsonValue = Field(alias="notes")
    state: ShopState = Field(alias="state")
    tags: Optional[List[str]] = Field(alias="tags")
    user_id: Optional[uuid.UUID] = Field(alias="user-id")

class ShopPersonInsert(TypedDict):
    born: NotRequired[Annotated[Optional[datetime.date], Field(alias="born")]]
    email: Annotated[str, Field(alias="email")]
    home: NotRequired[Annotated[Optional[ShopPlace], Field(alias="home")]]
    id: NotRequired[Annotated[int, Field(alias="id")]]
    notes: NotRequired[Annotated[JsonValue, Field(alias="notes")]]
    state: NotRequired[Annotated[ShopState, Field(alias="state")]]
    tags: NotRequired[Annotated[Optional[List[str]], Field(alias="tags")]]
    user_id: NotRequired[Annotated[Optional[uuid.UUID], Field(alias="user-id")]]

class ShopPersonUpdate(TypedDict):
    born: NotRequired[Annotated[Optional[datetime.date], Field(alias="born")]]
    email: NotRequired[Annotated[str, Field(alias="email")]]
    home: NotRequired[Annotated[Optional[ShopPlace], Field(alias="home")]]
    id: NotRequired[Annotated[int, Field(alias="id")]]
    notes: NotRequired[Annotated[JsonValue, Field(alias="notes")]]
    state: NotRequired[Annotated[ShopState, Field(alias="state")]]
    tags: NotRequired[Annotated[Optional[List[str]], Field(alias="tags")]]
    user_id: NotRequired[Annotated[Optional[uuid.UUID], Field(alias="user-id")]]

class ShopAdult(BaseModel):
    born: Optional[datetime.date] = Field(alias="born")
    email: Optional[str] = Field(alias="email")
    id: Optional[int] = Field(alias="id")

class ShopParcelCount(BaseModel):
    parcels: Optional[int] = Field(alias="parcels")
    sender_id: Optional[int] = Field(alias="sender_id")



class ShopPlace(BaseModel):
    city: Optional[str] = Field(alias="city")
    post_code: Optional[int] = Field(alias="post-code")
    kind: Optional[ShopState] = Field(alias="kind")
